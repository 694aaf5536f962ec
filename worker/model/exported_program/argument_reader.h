// Arguments of nodes, from JSON to values.
//
// Only sources include this, because nlohmann/json is large.
// Thread-safety: one thread for each object.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "worker/model/exported_program/argument.h"
#include "worker/model/exported_program/json_fields.h"
#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

// The names that a graph has defined until now.
class GraphScope {
 public:
  explicit GraphScope(ProgramGraph& graph) : graph_(graph) {}

  // A new value, or an error if there is one of this name.
  ValueRef define(JsonFields& fields, const std::string& name, ValueKind kind);
  // The value of this name, or an error.
  ValueRef find(JsonFields& fields, const std::string& name, bool is_tensor) const;

 private:
  ProgramGraph& graph_;
  std::unordered_map<std::string, uint32_t> values_;
};

using ReadGraph = std::function<std::shared_ptr<const ProgramGraph>(const nlohmann::json& graph)>;

// `argument`: {"as_int": 3} and the like. `who` begins the message of a kind that Lockstep does not
// take. `read_graph` reads a sub-graph.
ProgramArgument read_argument(JsonFields& fields, const GraphScope& scope,
                              const nlohmann::json& argument, const std::string& who,
                              const ReadGraph& read_graph);

ProgramDtype read_dtype(JsonFields& fields, const nlohmann::json& value, const std::string& who);
ProgramDevice read_device(JsonFields& fields, const nlohmann::json& value);

}  // namespace lockstep::exported
