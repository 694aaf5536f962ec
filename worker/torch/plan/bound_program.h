// A program whose inputs are bound: some to the engine's parameters, statistics and counters, the
// others to tensors of its own (constants).
//
// Thread-safety: one thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "worker/torch/model/model.h"
#include "worker/torch/plan/plan.h"

namespace lockstep::exported {

// The source of the tensor of a program's input.
struct InputSource {
  enum class Kind : uint8_t {
    kNone,
    kParameter,
    kStatistic,
    kCounter,
    kOwn,
    kUser,
    kLabels,
    kField
  };
  Kind kind = Kind::kNone;
  // By index of the model's layout for kParameter, kStatistic and kCounter, of the fields for
  // kField.
  uint32_t index = 0;
  std::vector<int64_t> shape;  // kStatistic, kCounter
  at::Tensor own;              // kOwn
  uint32_t user_input = 0;     // of Program::user_inputs: kUser, kLabels, kField
};

class BoundProgram {
 public:
  // `sources`: one for each of the program's inputs.
  BoundProgram(ProgramPlan plan, ProgramPlan::Options options, std::vector<InputSource> sources)
      : plan_(std::move(plan)), options_(std::move(options)), sources_(std::move(sources)) {
    for (const InputSource& source : sources_)
      versions_.push_back(source.own.defined() ? source.own._version() : 0);
  }

  // Prepares the program for another device, with its own tensors there.
  Status move_to(at::Device where);

  // Returns the program's outputs. The program may write to the inputs (LentInputs). `counters`:
  // one for each of the layout's. `observer` may be null. Throws as ProgramPlan::run().
  std::vector<at::Tensor> forward(const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                                  std::span<const at::Tensor> buffers,
                                  std::span<const int64_t> counters,
                                  const ForwardMode::Observer* observer) const;

  // The name of a tensor of its own that a forward has changed; empty if none has.
  std::string changed_tensor() const;

  const Program& program() const { return plan_.program(); }

 private:
  ProgramPlan plan_;
  ProgramPlan::Options options_;
  std::vector<InputSource> sources_;
  std::vector<uint32_t> versions_;  // of the tensors of its own, when they were bound
};

// The tensor of the file, copied in row-major order.
at::Tensor tensor_of(const ProgramTensor& tensor);

// The batch as the program wants it: channels-last if its example was.
at::Tensor input_of(const UserInput& input, const at::Tensor& x);
// The labels, or a field, as the program wants them: in its type.
at::Tensor labels_of(const UserInput& input, const at::Tensor& labels);

}  // namespace lockstep::exported
