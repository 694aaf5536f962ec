// The graph of a program whose weights are in 8 bits: nodes that take the numbers and the scales
// instead of the floats.
//
// Only sources include this, because nlohmann/json is large.
// Thread-safety: one thread for each object.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "worker/model/exported_program/int8/int8_program.h"
#include "worker/model/exported_program/int8/node_list.h"
#include "worker/model/exported_program/int8/weight_uses.h"
#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

// The new inputs of the graph for one weight.
struct Int8Inputs {
  std::string numbers;
  std::string scales;
};

class Int8Graph {
 public:
  // `graph`: the JSON that program.graph was read from, with the same nodes. It outlives this.
  Int8Graph(const Program& program, nlohmann::json& graph, Int8Form form);

  // A weight of the program. REQUIRES: before write().
  Int8Inputs add(const Int8Weight& weight);

  // Rewrites the graph's nodes. Its list of inputs is left to the caller.
  Int8Counts write();

 private:
  struct Held {
    const Int8Weight* weight = nullptr;
    const ProgramTensor* tensor = nullptr;
    Int8Inputs inputs;
    std::string floats;  // the name that the weight had, and its floats get
    bool has_floats = false;
  };
  struct LinearCall {
    nlohmann::json x;
    nlohmann::json bias;  // null: none
    std::string result;
    JsonSizes x_sizes;
    JsonSizes result_sizes;
  };

  // The parts of the call of a linear layer; empty if its arguments are not plain.
  std::optional<LinearCall> linear_call(const nlohmann::json& node) const;
  bool write_linear(const nlohmann::json& node, const Held& held, UseKind kind);
  bool write_gather(const nlohmann::json& node, const Held& held);
  void write_scaled(const LinearCall& call, const Held& held, UseKind kind);
  void write_dynamic(const LinearCall& call, const Held& held, UseKind kind);
  std::string flat_rows(const LinearCall& call, int64_t inputs, const JsonSizes& flat);
  nlohmann::json shape_argument(const LinearCall& call);
  void write_floats(Held& held);

  // The numbers as floats.
  std::string numbers_as_floats(const Held& held);
  std::string multiply(const std::string& a, const std::string& b, const JsonSizes& sizes,
                       const std::string& name = "");

  const Program& program_;
  const Int8Form form_;
  NodeList list_;
  std::vector<Held> held_;
  std::map<std::string, std::string> renamed_;  // other inputs of tied weights
  Int8Counts counts_;
};

}  // namespace lockstep::exported
