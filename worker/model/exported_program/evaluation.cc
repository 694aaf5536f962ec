#include "worker/model/exported_program/evaluation.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace lockstep::exported {
namespace {

const ProgramArgument* find_argument(const ProgramNode& node, std::string_view name) {
  const auto found = std::ranges::find(node.arguments, name, &NamedArgument::name);
  return found == node.arguments.end() ? nullptr : &found->value;
}

// A norm that has no other mean and deviation than its batch's.
bool lacks_statistics(const ProgramNode& node) {
  if (node.target.find("batch_norm") == std::string::npos &&
      node.target.find("instance_norm") == std::string::npos)
    return false;
  const ProgramArgument* mean = find_argument(node, "running_mean");
  return mean == nullptr || std::holds_alternative<std::monostate>(*mean);
}

bool takes(const ProgramArgument& argument, ValueRef value) {
  if (const auto* one = std::get_if<ValueRef>(&argument)) return *one == value;
  if (const auto* list = std::get_if<std::vector<ValueRef>>(&argument))
    return std::ranges::find(*list, value) != list->end();
  if (const auto* list = std::get_if<std::vector<std::optional<ValueRef>>>(&argument))
    return std::ranges::find(*list, std::optional(value)) != list->end();
  return false;
}

bool is_used(const ProgramGraph& graph, ValueRef value) {
  const auto uses = [&](const ProgramNode& node) {
    return std::ranges::any_of(node.arguments,
                               [&](const NamedArgument& a) { return takes(a.value, value); });
  };
  return std::ranges::any_of(graph.nodes, uses) ||
         std::ranges::find(graph.outputs, std::optional(value)) != graph.outputs.end();
}

}  // namespace

std::vector<ArgumentSwitch> evaluation_switches(const ProgramNode& node) {
  std::vector<ArgumentSwitch> switches;
  if (node.kind != NodeKind::kOperator || lacks_statistics(node)) return switches;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const auto& [name, value, is_keyword] = node.arguments[i];
    const bool is_flag = name == "train" || name == "training" || name == "use_input_stats";
    if (is_flag && std::holds_alternative<bool>(value) && std::get<bool>(value))
      switches.push_back({i, false});
    if (name == "dropout_p" && std::holds_alternative<double>(value) && std::get<double>(value) > 0)
      switches.push_back({i, 0.0});
  }
  return switches;
}

IsCounter counters_of(const Program& program) {
  return [&program](ValueRef value) {
    const auto input =
        std::ranges::find(program.inputs, std::optional(value), &ProgramInput::value);
    return input != program.inputs.end() && input->kind == InputKind::kBuffer &&
           program.tensors[input->tensor].dtype == ProgramDtype::kLong;
  };
}

IsCounter counters_of(const ProgramNode& node, const ProgramGraph& inner, IsCounter outer) {
  return [&node, &inner, outer = std::move(outer)](ValueRef value) {
    const auto input = std::ranges::find(inner.inputs, value);
    if (input == inner.inputs.end()) return false;
    const size_t argument = node.arguments.size() - inner.inputs.size() +
                            static_cast<size_t>(input - inner.inputs.begin());
    const auto* passed = std::get_if<ValueRef>(&node.arguments[argument].value);
    return passed != nullptr && outer(*passed);
  };
}

bool is_step_counter(const ProgramGraph& graph, size_t index, const IsCounter& is_counter) {
  const ProgramNode& node = graph.nodes[index];
  if (!node.target.starts_with("torch.ops.aten.add_.") || node.arguments.size() < 2) return false;
  const auto* self = std::get_if<ValueRef>(&node.arguments[0].value);
  if (self == nullptr || !std::holds_alternative<int64_t>(node.arguments[1].value)) return false;
  if (!is_counter(*self)) return false;
  return std::ranges::none_of(node.outputs, [&](const NodeOutput& output) {
    return std::ranges::any_of(output.values,
                               [&](ValueRef value) { return is_used(graph, value); });
  });
}

bool is_step_counter(const Program& program, size_t index) {
  return is_step_counter(program.graph, index, counters_of(program));
}

}  // namespace lockstep::exported
