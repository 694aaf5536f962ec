#include "worker/model/exported_program/graph_reader.h"

#include <utility>

#include "comm/base/limits.h"
#include "comm/base/text/printable.h"
#include "worker/model/exported_program/node_text.h"
#include "worker/model/exported_program/operators.h"

namespace lockstep::exported {
namespace {

using nlohmann::json;

// Arguments of a region before its graph: autocast has device type, dtype, enabled and cache.
constexpr size_t kBeforeAutocastGraph = 4;
constexpr size_t kBeforeGradGraph = 1;

std::optional<ValueKind> kind_of_value(const std::string& kind) {
  if (kind == "as_tensor") return ValueKind::kTensor;
  if (kind == "as_sym_int") return ValueKind::kInt;
  if (kind == "as_sym_float") return ValueKind::kFloat;
  if (kind == "as_sym_bool") return ValueKind::kBool;
  return std::nullopt;
}

// The name in {"as_tensor": {"name": "x"}} or {"as_sym_int": {"as_name": "s"}}; null if it is a
// constant.
const json* name_in(const json& tagged) {
  const json& value = tagged.begin().value();
  if (!value.is_object()) return nullptr;
  for (const char* key : {"name", "as_name"})
    if (const auto found = value.find(key); found != value.end()) return &*found;
  return nullptr;
}

}  // namespace

std::string node_text(const ProgramNode& node) {
  std::string text = printable(node.target);
  if (!node.user_line.empty()) text += " (" + node.user_line + ")";
  return text;
}

ProgramGraph GraphReader::read(const json& graph, std::vector<std::optional<ValueRef>>* inputs) {
  ProgramGraph read;
  GraphScope scope(read);
  for (const json& input : fields_.list(graph, "inputs")) {
    const auto kind = kind_of_value(fields_.kind(input, "an input of the graph"));
    const json* name = kind ? name_in(input) : nullptr;
    std::optional<ValueRef> value;
    if (name != nullptr)
      value = scope.define(fields_, fields_.as_text(*name, "an input's name"), *kind);
    if (value) read.inputs.push_back(*value);
    if (inputs != nullptr) inputs->push_back(value);
    if (inputs == nullptr && !value) fields_.malformed("an input of a sub-graph has no name");
  }
  for (const json& node : fields_.list(graph, "nodes")) {
    if (!fields_.is_ok()) return read;
    read_node(node, scope, read);
  }
  for (const json& output : fields_.list(graph, "outputs"))
    read.outputs.push_back(read_result(output, scope));
  const json& is_single = fields_.optional(graph, "is_single_tensor_return");
  read.is_single_tensor_return = is_single.is_boolean() && is_single.get<bool>();
  return read;
}

void GraphReader::read_node(const json& json_node, GraphScope& scope, ProgramGraph& graph) {
  if (++nodes_ > limits::kProgramNodes)
    return fields_.fail({Code::kConfig, "calls more than " + std::to_string(limits::kProgramNodes) +
                                            " operators; export a smaller model"});
  ProgramNode node;
  node.target = fields_.text(json_node, "target");
  const json& metadata = fields_.object(json_node, "metadata");
  const auto metadatum = [&](const char* key) {
    const json& text = fields_.optional(metadata, key);
    return text.is_string() ? text.get<std::string>() : std::string();
  };
  node.user_line = user_line(metadatum("stack_trace"));
  node.modules = modules_of(metadatum("nn_module_stack"));
  if (const json& name = fields_.optional(json_node, "name"); name.is_string())
    node.name = name.get<std::string>();
  const json& is_single = fields_.optional(json_node, "is_hop_single_tensor_return");
  node.is_single_tensor_return = is_single.is_boolean() && is_single.get<bool>();
  const std::string who = "calls " + node_text(node);
  const auto kind = kind_of_target(node.target);
  if (!kind) return fields_.fail({Code::kConfig, who + ", which " + why_refused(node.target)});
  node.kind = *kind;
  const ReadGraph read_graph = [this](const json& sub_graph) {
    return std::make_shared<const ProgramGraph>(read(sub_graph, nullptr));
  };
  for (const json& input : fields_.list(json_node, "inputs")) {
    const json& argument_kind = fields_.optional(input, "kind");
    node.arguments.push_back(
        {fields_.text(input, "name"),
         read_argument(fields_, scope, fields_.object(input, "arg"), who, read_graph),
         argument_kind == 2});
    if (!fields_.is_ok()) return;
  }
  for (const json& output : fields_.list(json_node, "outputs"))
    node.outputs.push_back(read_output(output, who, scope));
  check_region(node, who);
  graph.nodes.push_back(std::move(node));
}

NodeOutput GraphReader::read_output(const json& output, const std::string& who, GraphScope& scope) {
  if (output.is_null()) return {};
  const std::string kind = fields_.kind(output, "an output of a node");
  if (kind.empty() || kind == "as_none") return {};
  if (output.begin().value().is_null()) return {};
  NodeOutput read;
  if (const auto value_kind = kind_of_value(kind)) {
    const json* name = name_in(output);
    if (name == nullptr) return {};
    read.kind = NodeOutput::Kind::kValue;
    read.values.push_back(
        scope.define(fields_, fields_.as_text(*name, "an output's name"), *value_kind));
    return read;
  }
  if (kind != "as_tensors") {
    fields_.fail({Code::kConfig, who + ", whose result is of kind " + printable(kind) +
                                     ", which Lockstep does not know; write the line without it"});
    return {};
  }
  read.kind = NodeOutput::Kind::kTensors;
  for (const json& tensor : fields_.list(output, "as_tensors"))
    read.values.push_back(scope.define(fields_, fields_.text(tensor, "name"), ValueKind::kTensor));
  return read;
}

std::optional<ValueRef> GraphReader::read_result(const json& output, const GraphScope& scope) {
  const std::string kind = fields_.kind(output, "an output of the graph");
  const auto value_kind = kind_of_value(kind);
  if (!value_kind) return std::nullopt;
  const json* name = name_in(output);
  if (name == nullptr) return std::nullopt;
  return scope.find(fields_, fields_.as_text(*name, "an output's name"),
                    *value_kind == ValueKind::kTensor);
}

// A region passes its last arguments to its graph and returns the graph's results.
void GraphReader::check_region(const ProgramNode& node, const std::string& who) {
  using Graph = std::shared_ptr<const ProgramGraph>;
  const bool is_region = node.kind == NodeKind::kAutocast || node.kind == NodeKind::kSetGradEnabled;
  size_t graphs = 0;
  for (const NamedArgument& argument : node.arguments)
    graphs += std::holds_alternative<Graph>(argument.value) ? 1 : 0;
  if (!is_region) {
    if (graphs > 0) fields_.malformed(who + " with a graph");
    return;
  }
  const size_t before = node.kind == NodeKind::kAutocast ? kBeforeAutocastGraph : kBeforeGradGraph;
  if (graphs != 1 || node.arguments.size() <= before ||
      !std::holds_alternative<Graph>(node.arguments[before].value))
    return fields_.malformed(who + " without its graph");
  const auto holds = [&]<typename... T>(size_t i) {
    return (std::holds_alternative<T>(node.arguments[i].value) || ...);
  };
  const bool is_as_known =
      node.kind == NodeKind::kSetGradEnabled
          ? holds.operator()<bool>(0)
          : holds.operator()<std::string>(0) && holds.operator()<std::monostate, ProgramDtype>(1) &&
                holds.operator()<bool>(2) && holds.operator()<std::monostate, bool>(3);
  if (!is_as_known) return fields_.malformed(who + " with other arguments");
  const ProgramGraph& graph = *std::get<Graph>(node.arguments[before].value);
  if (node.arguments.size() - before - 1 != graph.inputs.size())
    return fields_.malformed(who + " with another number of arguments than its graph takes");
  if (node.outputs.size() > graph.outputs.size())
    return fields_.malformed(who + " with more results than its graph gives");
  for (size_t i = before + 1; i < node.arguments.size(); ++i)
    if (!holds.operator()<ValueRef>(i))
      return fields_.malformed(who + " with an argument that is no value");
}

}  // namespace lockstep::exported
