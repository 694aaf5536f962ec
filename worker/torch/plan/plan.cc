#include "worker/torch/plan/plan.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <stdexcept>

#include "worker/torch/model/foreign.h"

namespace lockstep::exported {
namespace {

// As torch.autocast(device, dtype, enabled, cache_enabled) in Python.
class AutocastRegion {
 public:
  explicit AutocastRegion(const Instruction& mode)
      : device_(mode.device),
        was_enabled_(at::autocast::is_autocast_enabled(device_)),
        was_cached_(at::autocast::is_autocast_cache_enabled()),
        type_before_(at::autocast::get_autocast_dtype(device_)) {
    at::autocast::set_autocast_enabled(device_, mode.is_enabled);
    if (mode.dtype) at::autocast::set_autocast_dtype(device_, *mode.dtype);
    at::autocast::set_autocast_cache_enabled(mode.is_cached);
    at::autocast::increment_nesting();
  }
  ~AutocastRegion() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_cache_enabled(was_cached_);
    at::autocast::set_autocast_dtype(device_, type_before_);
    at::autocast::set_autocast_enabled(device_, was_enabled_);
  }
  AutocastRegion(const AutocastRegion&) = delete;
  AutocastRegion& operator=(const AutocastRegion&) = delete;

 private:
  const at::DeviceType device_;
  const bool was_enabled_;
  const bool was_cached_;
  const at::ScalarType type_before_;
};

void put(c10::IValue value, const Instruction::Output& output, Values& values) {
  if (!output.is_list) {
    if (!output.slots.empty() && output.slots[0] != kNoSlot)
      values[output.slots[0]] = std::move(value);
    return;
  }
  const std::vector<at::Tensor> tensors = value.toTensorVector();
  if (tensors.size() != output.slots.size())
    throw std::runtime_error("gives " + std::to_string(tensors.size()) + " tensors instead of " +
                             std::to_string(output.slots.size()));
  for (size_t i = 0; i < tensors.size(); ++i)
    if (output.slots[i] != kNoSlot) values[output.slots[i]] = tensors[i];
}

}  // namespace

struct ProgramPlan::Run {
  Values values;
  torch::jit::Stack stack;
  const Observer* observer;
  const Watcher* watcher;
};

std::string text_of(const ProgramNode& node) {
  std::string target = node.target;
  if (const std::string start = "torch.ops."; target.starts_with(start))
    target.erase(0, start.size());
  if (const std::string end = ".default"; target.ends_with(end))
    target.erase(target.size() - end.size());
  return node.user_line.empty() ? target : target + " (" + node.user_line + ")";
}

std::vector<at::Tensor> ProgramPlan::run(std::span<const at::Tensor> inputs,
                                         const Observer* observer, const Watcher* watcher) const {
  Run run{.values = Values(slots_), .stack = {}, .observer = observer, .watcher = watcher};
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i] != kNoSlot) run.values[inputs_[i]] = inputs[i];
  for (const auto& [slot, value] : constants_) run.values[slot] = value;
  run_range(0, instructions_.size(), run);
  std::vector<at::Tensor> out;
  for (const Slot slot : outputs_)
    out.push_back(slot == kNoSlot ? at::Tensor() : run.values[slot].toTensor());
  return out;
}

const ProgramNode* ProgramPlan::reader_of(size_t input) const {
  std::vector<Slot> shown = {inputs_[input]};  // by the input, and by the results of counting
  if (!uses_input(input)) return nullptr;
  for (const Instruction& instruction : instructions_) {
    const auto takes = [&](const CallArgument& argument) {
      return std::ranges::any_of(argument.slots(), [&](Slot slot) {
        return slot != kNoSlot && std::ranges::find(shown, slot) != shown.end();
      });
    };
    if (std::ranges::none_of(instruction.arguments, takes)) continue;
    // `n += 1` of a buffer is add_, and then copy_ of the result to where it is already.
    const std::string& target = instruction.node->target;
    const bool adds =
        (target.starts_with("torch.ops.aten.add_.") || target.starts_with("torch.ops.aten.add.")) &&
        takes(instruction.arguments[0]) && instruction.arguments[1].constant() != nullptr;
    const bool puts_back = target.starts_with("torch.ops.aten.copy_.") &&
                           takes(instruction.arguments[0]) && takes(instruction.arguments[1]);
    const bool only_counts = adds || puts_back;
    if (!only_counts) return instruction.node;
    for (const auto& output : instruction.outputs)
      shown.insert(shown.end(), output.slots.begin(), output.slots.end());
  }
  return nullptr;
}

void ProgramPlan::run_range(size_t begin, size_t end, Run& run) const {
  for (size_t i = begin; i < end;) {
    const Instruction& instruction = instructions_[i];
    switch (instruction.kind) {
      case NodeKind::kOperator:
      case NodeKind::kPython:
        call(instruction, run);
        ++i;
        break;
      case NodeKind::kAutocast: {
        const AutocastRegion region(instruction);
        run_range(i + 1, instruction.body_end, run);
        i = instruction.body_end;
        break;
      }
      case NodeKind::kSetGradEnabled: {
        const at::AutoGradMode region(instruction.is_enabled);
        run_range(i + 1, instruction.body_end, run);
        i = instruction.body_end;
        break;
      }
    }
  }
}

void ProgramPlan::call(const Instruction& instruction, Run& run) const {
  try {
    torch::jit::Stack& stack = run.stack;
    stack.clear();
    for (const CallArgument& argument : instruction.arguments)
      stack.push_back(argument.of(run.values));
    if (instruction.kind == NodeKind::kPython) {
      const c10::IValue result = instruction.function->call(stack);
      stack.assign(1, result);
    } else {
      instruction.call->callBoxed(&stack);
    }
    for (size_t i = 0; i < instruction.outputs.size(); ++i)
      put(std::move(stack.at(i)), instruction.outputs[i], run.values);
    stack.clear();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    throw std::runtime_error(text_of(*instruction.node) + ": " + one_line(error));
  }
  if (run.observer != nullptr && instruction.observed != kNobody) {
    const c10::IValue& output = run.values[instruction.outputs[0].slots[0]];
    (*run.observer)(instruction.observed, output.toTensor());
  }
  if (run.watcher != nullptr) (*run.watcher)(instruction);
  for (const Slot slot : instruction.last_used) run.values[slot] = {};
}

}  // namespace lockstep::exported
