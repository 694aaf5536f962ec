// A program as a list of calls of LibTorch's operators, for one device. A forward runs them.
//
// Calls go through LibTorch's dispatcher, so autograd and autocast act on them as on PyTorch's own.
// A value lives until its last use in the list; autograd keeps the tensors that backward needs.
//
// Thread-safety: immutable once compiled, so run() from any thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/status.h"
#include "worker/model/exported_program/program.h"
#include "worker/torch/plan/call_argument.h"
#include "worker/torch/plan/numbers.h"

namespace lockstep::exported {

constexpr uint32_t kNobody = UINT32_MAX;

// One node of the program, or of one of its sub-graphs.
struct Instruction {
  NodeKind kind = NodeKind::kOperator;
  std::optional<c10::OperatorHandle> call;   // of kOperator
  const PythonFunction* function = nullptr;  // of kPython
  std::vector<CallArgument> arguments;

  struct Output {
    bool is_list = false;
    std::vector<Slot> slots;  // kNoSlot: nothing uses the value
  };
  std::vector<Output> outputs;  // one a result of the call; an empty one is skipped

  // For the other kinds: the instructions up to `body_end` run in this mode.
  size_t body_end = 0;
  bool is_enabled = false;
  bool is_cached = false;               // autocast
  std::optional<at::ScalarType> dtype;  // autocast
  at::DeviceType device = at::kCPU;     // autocast

  std::vector<Slot> last_used;  // nothing needs them after this instruction
  uint32_t observed = kNobody;  // the parameter for which ForwardMode::observer gets the output
  const ProgramNode* node = nullptr;
};

class ProgramPlan {
 public:
  // An input of the program in a run: a tensor of the caller's list, by its index.
  struct Options {
    at::Device where = at::kCPU;
    bool is_evaluation = false;  // switched to evaluation (evaluation.h), counters left out
    // The parameter whose module ends at a node: module path -> index.
    std::function<uint32_t(const std::string& module)> parameter_of_module;
  };

  // kConfig: an operator or an argument that LibTorch does not know. The message says which, and
  // the line of Python.
  static Result<ProgramPlan> compile(std::shared_ptr<const Program> program,
                                     const Options& options);

  using Observer = std::function<void(uint32_t parameter, const at::Tensor& output)>;
  // Called after each call of an operator.
  using Watcher = std::function<void(const Instruction&)>;

  // `inputs`: a tensor for each of program().inputs, in order; undefined ones for kFixed. Returns
  // the outputs of the program; undefined ones for None. Throws what LibTorch throws, with the
  // operator and the line of Python; c10::OutOfMemoryError as it is.
  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs,
                              const Observer* observer = nullptr,
                              const Watcher* watcher = nullptr) const;

  // Whether anything takes the input of this index; run() ignores the others.
  bool uses_input(size_t input) const { return inputs_[input] != kNoSlot; }
  // The first call that takes the input of this index and does more than add a number to it in
  // place. Null: none does.
  const ProgramNode* reader_of(size_t input) const;

  const Program& program() const { return *program_; }
  const std::shared_ptr<const Program>& shared_program() const { return program_; }
  std::span<const Instruction> instructions() const { return instructions_; }

 private:
  friend class PlanCompiler;
  struct Run;
  ProgramPlan() = default;
  void run_range(size_t begin, size_t end, Run& run) const;
  void call(const Instruction& instruction, Run& run) const;

  std::shared_ptr<const Program> program_;
  std::vector<Instruction> instructions_;
  std::vector<std::pair<Slot, c10::IValue>> constants_;  // numbers that sub-graphs take
  std::vector<Slot> inputs_;                             // kNoSlot: nothing uses the input
  std::vector<Slot> outputs_;                            // kNoSlot: None
  Slot slots_ = 0;
};

// "aten.conv2d (model.py, line 9: x = self.conv(x))".
std::string text_of(const ProgramNode& node);

}  // namespace lockstep::exported
