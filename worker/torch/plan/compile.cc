// Compiles the nodes of a program to the instructions of a plan. Sub-graphs become ranges of the
// list, whose inputs and outputs are the slots of the graph around them.
#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>

#include <map>
#include <utility>

#include "worker/model/exported_program/evaluation.h"
#include "worker/torch/plan/plan.h"

namespace lockstep::exported {
namespace {

constexpr std::string_view kOperatorStart = "torch.ops.";

// A slot of each value of one graph.
using Slots = std::vector<Slot>;

Status refused(const ProgramNode& node, const std::string& why) {
  return {Code::kConfig, "calls " + text_of(node) + ", but " + why};
}

// "fc" of the second call "fc@1".
std::string without_call(const std::string& path) {
  return path.substr(0, path.find('@'));
}

// aten::conv2d of torch.ops.aten.conv2d.default.
std::optional<c10::OperatorHandle> find_operator(std::string target) {
  if (!target.starts_with(kOperatorStart)) return std::nullopt;
  target.erase(0, kOperatorStart.size());
  const size_t name = target.find('.');
  const size_t overload = target.find('.', name + 1);
  if (name == std::string::npos || overload == std::string::npos) return std::nullopt;
  std::string which = target.substr(overload + 1);
  if (which == "default") which.clear();
  return c10::Dispatcher::singleton().findSchema(
      {target.substr(0, name) + "::" + target.substr(name + 1, overload - name - 1), which});
}

}  // namespace

class PlanCompiler {
 public:
  PlanCompiler(std::shared_ptr<const Program> program, const ProgramPlan::Options& options)
      : options_(options),
        converter_(options.where,
                   program->user_inputs.empty() ? "cpu" : program->user_inputs[0].device.type) {
    plan_.program_ = std::move(program);
  }

  Result<ProgramPlan> compile() {
    const Program& program = *plan_.program_;
    Slots slots = new_slots(program.graph);
    for (const ProgramInput& input : program.inputs)
      plan_.inputs_.push_back(input.value ? slots[input.value->value] : kNoSlot);
    LOCKSTEP_RETURN_IF_ERROR(add_nodes(program.graph, slots, counters_of(program)));
    for (const ProgramOutput& output : program.outputs)
      plan_.outputs_.push_back(output.value ? slots[output.value->value] : kNoSlot);
    find_last_uses();
    drop_unused_inputs();
    find_ends_of_modules();
    return std::move(plan_);
  }

 private:
  Slots new_slots(const ProgramGraph& graph) {
    Slots slots(graph.values.size());
    for (Slot& slot : slots) slot = plan_.slots_++;
    return slots;
  }

  Status add_nodes(const ProgramGraph& graph, Slots& slots, const IsCounter& is_counter);
  Status add_node(const ProgramGraph& graph, const ProgramNode& node, Slots& slots,
                  const IsCounter& is_counter);
  Result<Instruction> operator_call(const ProgramGraph& graph, const ProgramNode& node,
                                    const Slots& slots) const;
  Result<Instruction> function_call(const ProgramGraph& graph, const ProgramNode& node,
                                    const Slots& slots) const;
  Status add_region(const ProgramGraph& graph, const ProgramNode& node, Slots& slots,
                    const IsCounter& is_counter);
  Result<Instruction> mode_of(const ProgramNode& node) const;
  static Status add_outputs(const ProgramNode& node, const Slots& slots, Instruction* out);
  void find_last_uses();
  void drop_unused_inputs();
  void find_ends_of_modules();

  const ProgramPlan::Options& options_;
  const ArgumentConverter converter_;
  ProgramPlan plan_;
};

Status PlanCompiler::add_nodes(const ProgramGraph& graph, Slots& slots,
                               const IsCounter& is_counter) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const ProgramNode& node = graph.nodes[i];
    // It has the types and the device of the export, and throws under autocast.
    if (node.target == "torch.ops.aten._assert_tensor_metadata.default") continue;
    if (options_.is_evaluation && is_step_counter(graph, i, is_counter)) continue;
    LOCKSTEP_RETURN_IF_ERROR(add_node(graph, node, slots, is_counter));
  }
  return Status::ok();
}

Status PlanCompiler::add_node(const ProgramGraph& graph, const ProgramNode& node, Slots& slots,
                              const IsCounter& is_counter) {
  if (node.kind == NodeKind::kAutocast || node.kind == NodeKind::kSetGradEnabled)
    return add_region(graph, node, slots, is_counter);
  LOCKSTEP_ASSIGN_OR_RETURN(Instruction instruction, node.kind == NodeKind::kPython
                                                         ? function_call(graph, node, slots)
                                                         : operator_call(graph, node, slots));
  LOCKSTEP_RETURN_IF_ERROR(add_outputs(node, slots, &instruction));
  plan_.instructions_.push_back(std::move(instruction));
  return Status::ok();
}

Result<Instruction> PlanCompiler::operator_call(const ProgramGraph& graph, const ProgramNode& node,
                                                const Slots& slots) const {
  Instruction out;
  out.node = &node;
  out.call = find_operator(node.target);
  if (!out.call || !out.call->hasSchema())
    return refused(node, "LibTorch here has no such operator; export the model with torch 2.11");
  std::map<std::string_view, const ProgramArgument*> given;
  for (const NamedArgument& argument : node.arguments) given[argument.name] = &argument.value;
  std::vector<ArgumentSwitch> switches;
  if (options_.is_evaluation) switches = evaluation_switches(node);
  for (const ArgumentSwitch& s : switches) given[node.arguments.at(s.argument).name] = &s.value;
  const auto place = [&](ValueRef ref) {
    return PlacedValue{slots.at(ref.value), graph.values.at(ref.value).kind};
  };
  const bool is_embedding = out.call->schema().name().starts_with("aten::embedding");
  const ProgramArgument dense = false;
  for (const c10::Argument& wanted : out.call->schema().arguments()) {
    const auto found = given.find(wanted.name());
    const ProgramArgument* value = found == given.end() ? nullptr : found->second;
    if (value != nullptr) given.erase(found);
    // Gradients of the engine are dense, with the same values.
    if (is_embedding && wanted.name() == "sparse") value = &dense;
    auto argument = value == nullptr ? ArgumentConverter::missing(wanted)
                                     : converter_.convert(*value, wanted, place);
    if (!argument.is_ok()) return refused(node, argument.status().message());
    out.arguments.push_back(*std::move(argument));
  }
  if (!given.empty())
    return refused(node, "it has no argument " + std::string(given.begin()->first) +
                             " in the LibTorch here; export the model with torch 2.11");
  return out;
}

Result<Instruction> PlanCompiler::function_call(const ProgramGraph& graph, const ProgramNode& node,
                                                const Slots& slots) const {
  Instruction out;
  out.kind = NodeKind::kPython;
  out.node = &node;
  out.function = find_python_function(node.target);
  if (out.function == nullptr || node.arguments.size() != out.function->arguments)
    return refused(node, "Lockstep does not know this function of Python; write the line without");
  const auto place = [&](ValueRef ref) {
    return PlacedValue{slots.at(ref.value), graph.values.at(ref.value).kind};
  };
  const c10::Argument number("number", c10::NumberType::get());
  for (const NamedArgument& argument : node.arguments) {
    auto converted = converter_.convert(argument.value, number, place);
    if (!converted.is_ok()) return refused(node, converted.status().message());
    out.arguments.push_back(*std::move(converted));
  }
  return out;
}

Status PlanCompiler::add_outputs(const ProgramNode& node, const Slots& slots, Instruction* out) {
  const size_t results = out->kind == NodeKind::kPython ? 1 : out->call->schema().returns().size();
  if (node.outputs.size() > results)
    return refused(node, "it gives " + std::to_string(results) + " results and the program takes " +
                             std::to_string(node.outputs.size()));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const NodeOutput& output = node.outputs[i];
    Instruction::Output& to = out->outputs.emplace_back();
    to.is_list = output.kind == NodeOutput::Kind::kTensors;
    for (const ValueRef ref : output.values) to.slots.push_back(slots.at(ref.value));
  }
  return Status::ok();
}

// The mode in which a sub-graph runs. Its graph and arguments follow.
Result<Instruction> PlanCompiler::mode_of(const ProgramNode& node) const {
  Instruction out;
  out.kind = node.kind;
  out.node = &node;
  const auto argument = [&]<typename T>(size_t i, const T&) -> const T* {
    return i < node.arguments.size() ? std::get_if<T>(&node.arguments[i].value) : nullptr;
  };
  const Status malformed = refused(node,
                                   "its arguments are not those of this version of PyTorch; "
                                   "export the model with torch 2.11");
  if (node.kind == NodeKind::kSetGradEnabled) {
    const bool* enabled = argument(0, bool());
    if (enabled == nullptr) return malformed;
    out.is_enabled = *enabled;
    return out;
  }
  const auto* device = argument(0, std::string());
  const auto* dtype = argument(1, ProgramDtype());
  const bool* enabled = argument(2, bool());
  const bool* cached = argument(3, bool());
  if (device == nullptr || enabled == nullptr || cached == nullptr) return malformed;
  auto where = converter_.device({*device, std::nullopt});
  if (!where.is_ok()) return refused(node, where.status().message());
  out.device = where->type();
  out.is_enabled = *enabled;
  out.is_cached = *cached;
  if (dtype != nullptr) out.dtype = torch_type(*dtype);
  return out;
}

Status PlanCompiler::add_region(const ProgramGraph& graph, const ProgramNode& node, Slots& slots,
                                const IsCounter& is_counter) {
  LOCKSTEP_ASSIGN_OR_RETURN(Instruction mode, mode_of(node));
  const size_t first = node.kind == NodeKind::kAutocast ? 4 : 1;
  const std::shared_ptr<const ProgramGraph>* body =
      first < node.arguments.size()
          ? std::get_if<std::shared_ptr<const ProgramGraph>>(&node.arguments[first].value)
          : nullptr;
  if (body == nullptr || (*body)->inputs.size() != node.arguments.size() - first - 1)
    return refused(node, "its sub-graph is not what it is given");
  const ProgramGraph& inner = **body;
  Slots inner_slots = new_slots(inner);
  const c10::Argument number("number", c10::NumberType::get());
  for (size_t i = 0; i < inner.inputs.size(); ++i) {
    const ProgramArgument& value = node.arguments[first + 1 + i].value;
    Slot& slot = inner_slots.at(inner.inputs[i].value);
    if (const auto* ref = std::get_if<ValueRef>(&value)) {
      if (graph.values.at(ref->value).kind != inner.values.at(inner.inputs[i].value).kind)
        return refused(node, "its sub-graph takes another kind of value");
      slot = slots.at(ref->value);
    } else {
      const auto constant = converter_.convert(value, number, nullptr);
      if (!constant.is_ok()) return refused(node, constant.status().message());
      plan_.constants_.emplace_back(slot, constant->of({}));
    }
  }
  const size_t at = plan_.instructions_.size();
  plan_.instructions_.push_back(std::move(mode));
  LOCKSTEP_RETURN_IF_ERROR(add_nodes(inner, inner_slots, counters_of(node, inner, is_counter)));
  plan_.instructions_[at].body_end = plan_.instructions_.size();

  std::vector<std::optional<ValueRef>> taken;
  for (const NodeOutput& output : node.outputs) {
    if (output.kind == NodeOutput::Kind::kNothing) taken.emplace_back();
    for (const ValueRef ref : output.values) taken.emplace_back(ref);
  }
  if (taken.size() > inner.outputs.size())
    return refused(node, "its sub-graph gives fewer results than the program takes");
  for (size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]) continue;
    if (!inner.outputs[i] ||
        inner.values.at(inner.outputs[i]->value).kind != graph.values.at(taken[i]->value).kind)
      return refused(node, "its sub-graph gives another kind of result than the program takes");
    slots.at(taken[i]->value) = inner_slots.at(inner.outputs[i]->value);
  }
  return Status::ok();
}

void PlanCompiler::find_last_uses() {
  std::vector<size_t> last(plan_.slots_, SIZE_MAX);
  for (size_t i = 0; i < plan_.instructions_.size(); ++i) {
    const Instruction& instruction = plan_.instructions_[i];
    for (const auto& output : instruction.outputs)
      for (const Slot slot : output.slots) last[slot] = i;
    for (const CallArgument& argument : instruction.arguments)
      for (const Slot slot : argument.slots())
        if (slot != kNoSlot) last[slot] = i;
  }
  for (const Slot slot : plan_.outputs_)
    if (slot != kNoSlot) last[slot] = SIZE_MAX;
  for (Slot slot = 0; slot < last.size(); ++slot)
    if (last[slot] != SIZE_MAX) plan_.instructions_[last[slot]].last_used.push_back(slot);
}

void PlanCompiler::drop_unused_inputs() {
  std::vector<bool> is_used(plan_.slots_, false);
  for (const Instruction& instruction : plan_.instructions_)
    for (const CallArgument& argument : instruction.arguments)
      for (const Slot slot : argument.slots())
        if (slot != kNoSlot) is_used[slot] = true;
  for (const Slot slot : plan_.outputs_)
    if (slot != kNoSlot) is_used[slot] = true;
  for (Slot& slot : plan_.inputs_)
    if (slot != kNoSlot && !is_used[slot]) slot = kNoSlot;
}

void PlanCompiler::find_ends_of_modules() {
  if (!options_.parameter_of_module) return;
  std::map<std::string, size_t> ends;  // by call of a module: the last instruction with one tensor
  for (size_t i = 0; i < plan_.instructions_.size(); ++i) {
    const Instruction& instruction = plan_.instructions_[i];
    const bool gives_a_tensor =
        instruction.kind == NodeKind::kOperator && !instruction.outputs.empty() &&
        !instruction.outputs[0].is_list && !instruction.outputs[0].slots.empty() &&
        instruction.call->schema().returns()[0].type()->kind() == c10::TypeKind::TensorType;
    if (gives_a_tensor && !instruction.node->modules.empty())
      ends[instruction.node->modules.back().path] = i;
  }
  for (const auto& [path, end] : ends)
    plan_.instructions_[end].observed = options_.parameter_of_module(without_call(path));
}

Result<ProgramPlan> ProgramPlan::compile(std::shared_ptr<const Program> program,
                                         const Options& options) {
  try {
    return PlanCompiler(std::move(program), options).compile();
  } catch (const c10::Error& error) {
    return Status(Code::kConfig,
                  "cannot be prepared: " + std::string(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return Status(Code::kConfig, std::string("cannot be prepared: ") + error.what());
  }
}

}  // namespace lockstep::exported
