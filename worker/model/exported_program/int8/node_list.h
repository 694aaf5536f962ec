// Nodes of a graph in the JSON of PyTorch's export schema 8, written one after another.
//
// Only sources include this, because nlohmann/json is large.
// Thread-safety: one thread for each object.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "worker/model/exported_program/argument.h"

namespace lockstep::exported {

// {"as_int": 6}, or {"as_expr": ...} for a size that depends on the batch.
using JsonSizes = std::vector<nlohmann::json>;

JsonSizes sizes_of_shape(std::span<const int64_t> shape);
bool is_fixed(const nlohmann::json& size);
// The sizes multiplied.
nlohmann::json size_product(std::span<const nlohmann::json> sizes);

// An entry of "tensor_values": a row-major tensor.
nlohmann::json meta_of_tensor(ProgramDtype dtype, const JsonSizes& sizes,
                              const nlohmann::json& device);

// {"name": ..., "arg": ..., "kind": 1}, and its `arg` for a value.
nlohmann::json json_argument(const char* name, nlohmann::json value);
nlohmann::json json_tensor(const std::string& value);

class NodeList {
 public:
  // Takes the nodes out of `graph`, which outlives this. `device`: of the tensors to come.
  NodeList(nlohmann::json& graph, nlohmann::json device);

  const std::vector<nlohmann::json>& old_nodes() const { return old_; }

  // Nodes that follow have its modules, and the one that gives its result its lines of Python.
  void stand_for(const nlohmann::json& node) { origin_ = &node; }

  void keep(nlohmann::json node) { new_.push_back(std::move(node)); }

  // Calls torch.ops.aten.TARGET; returns the name of its result. `name`: that it shall have;
  // empty: a new one.
  std::string call(const std::string& target, std::vector<nlohmann::json> inputs,
                   ProgramDtype dtype, const JsonSizes& sizes, const std::string& name = "");
  // A size of a tensor as a number of the graph.
  std::string size_of(const std::string& tensor, int64_t dim, const nlohmann::json& size);

  // Empty if the file does not tell.
  std::optional<JsonSizes> sizes_of(const std::string& tensor) const;
  // A name that no value has; no other call returns it.
  std::string new_name(const std::string& like);

  // Puts the nodes into the graph.
  void finish() { graph_["nodes"] = std::move(new_); }

 private:
  nlohmann::json node(const std::string& target, std::vector<nlohmann::json> inputs,
                      nlohmann::json output, const std::string& name, bool is_last) const;

  nlohmann::json& graph_;
  const nlohmann::json device_;
  std::vector<nlohmann::json> old_;
  std::vector<nlohmann::json> new_;
  std::set<std::string> names_;
  const nlohmann::json* origin_ = nullptr;
};

}  // namespace lockstep::exported
