// The graph of a program, from JSON to values, with its sub-graphs.
//
// Only sources include this, because nlohmann/json is large.
// Thread-safety: one thread for each object.
#pragma once

#include <string>

#include "worker/model/exported_program/argument_reader.h"
#include "worker/model/exported_program/json_fields.h"
#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

class GraphReader {
 public:
  explicit GraphReader(JsonFields& fields) : fields_(fields) {}

  // Inputs that are no tensors and no symbols have no value: `inputs` has one entry for each.
  ProgramGraph read(const nlohmann::json& graph, std::vector<std::optional<ValueRef>>* inputs);

 private:
  void read_node(const nlohmann::json& json, GraphScope& scope, ProgramGraph& graph);
  NodeOutput read_output(const nlohmann::json& json, const std::string& who, GraphScope& scope);
  std::optional<ValueRef> read_result(const nlohmann::json& json, const GraphScope& scope);
  void check_region(const ProgramNode& node, const std::string& who);

  JsonFields& fields_;
  size_t nodes_ = 0;
};

// "torch.ops.aten.linear.default (model.py, line 9: x = self.fc(x))", for messages.
std::string node_text(const ProgramNode& node);

}  // namespace lockstep::exported
