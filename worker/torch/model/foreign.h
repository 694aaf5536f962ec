// The engine's requirements on a model from a file. Lockstep checks them at start with a few
// samples, and in every forward as far as the check costs nothing.
//
// Thread-safety: free functions without state.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"
#include "worker/torch/model/model.h"

namespace lockstep {

// By index of a model's layout; parameters require a gradient.
struct InitialTensors {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
};

// The tensors that a run with seed 1 would begin with.
InitialTensors initial_tensors(const ModelLayout& layout);

// Random samples, the same each time: floats in [-1, 1), or tokens below `classes`. Zeros would
// leave the statistics of a batch norm unchanged.
at::Tensor sample_input(const data::SampleShape& shape, uint64_t batch, uint32_t classes);

// Random labels of these samples, the same each time.
at::Tensor sample_labels(const data::SampleShape& shape, uint64_t batch, uint32_t classes);

// All that a forward may take. Whole numbers of fields are 0 and 1, and floats are in [0, 1).
ModelInputs sample_inputs(const data::SampleShape& shape, uint64_t batch, uint32_t classes);

bool same_bits(const at::Tensor& a, const at::Tensor& b);

// Returns "" if `output` is right for the batch x: floats (B, classes), or (B, T, classes), on the
// device of x. Else describes `output` and the right one. x may be shorter than `shape`, if
// documents are padded.
std::string wrong_output(const at::Tensor& output, const at::Tensor& x,
                         const data::SampleShape& shape, uint32_t classes);

// The output of a model that has a loss of its own.
struct OwnOutputs {
  at::Tensor losses;
  at::Tensor weights;  // undefined: none
  std::vector<at::Tensor> metrics;
};
// Makes tensors of one value a sample of them: a loss that is one number counts as the mean over
// the samples. Throws std::runtime_error, beginning with `who`, if something has another shape.
// `names`: of the metrics.
ModelOutput own_output(OwnOutputs given, const at::Tensor& x, const std::string& who,
                       const std::vector<std::string>& names);

// The batch, for a forward that may write to it.
ModelInputs copied(const ModelInputs& inputs);

// Protects the batch from a model that writes to it: a batch is read again after a forward, by the
// average of the weights, for example. In the trial at start a model gets copies, which show the
// tensors that it writes to. Afterwards it gets copies of these, and the batch's own others.
//
// Thread-safety: one thread at a time.
class LentInputs {
 public:
  using Forward = std::function<ModelOutput(const ModelInputs& lent)>;

  // Calls `forward`. Throws std::runtime_error, beginning with `who`, if it has written to a tensor
  // that the trial's forwards left alone.
  ModelOutput with(const ModelInputs& inputs, const std::string& who, const Forward& forward) const;
  void end_trial() { is_trial_ = false; }

 private:
  struct Lent {
    const char* name;
    at::Tensor ModelInputs::*tensor;
    bool is_written = false;
  };
  bool is_trial_ = true;
  mutable std::array<Lent, 2> lent_ = {
      {{"input", &ModelInputs::x}, {"labels", &ModelInputs::labels}}};
};

// One line of the text of an exception from LibTorch or from a script, without the stack.
std::string one_line(const std::exception& error);

// Samples that check_start() gives to a forward of each mode.
struct TrialBatches {
  uint64_t training = 2;
  uint64_t evaluation = 2;
};

// Runs the model in both modes with its initial values. If documents are padded, the model runs on
// the widest and on the narrowest batch.
// kConfig, with a message that begins with `who`, if the model
// - throws,
// - gives anything but finite logits,
// - gives an output that does not depend on its parameters, or
// - changes buffers in evaluation.
Status check_start(const Model& model, const std::string& who, const data::SampleShape& shape,
                   uint32_t classes, const TrialBatches& batches = {});

}  // namespace lockstep
