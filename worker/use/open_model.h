// A trained model, ready for batches of one kind: evaluation mode, no gradients. Computes what an
// evaluation of the run computes, bit for bit with the same batches and threads.
//
// Errors: of make_model() and load_own_weights(); kBadData if the samples do not fit the model,
// naming the data; kUsage for a plug-in without its run.
//
// Thread-safety: one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"
#include "worker/model/model.h"
#include "worker/use/model_tensors.h"
#include "worker/use/trained_model.h"

namespace lockstep {

// The data that a trained model is used on.
struct DataKind {
  std::string name;  // for messages
  data::SampleShape shape;
  uint32_t classes = 0;  // that they show
};

class OpenModel {
 public:
  static Result<OpenModel> open(const TrainedModel& model, const DataKind& data);

  uint32_t classes() const { return classes_; }

  // kConfig unless the model takes batches of so many samples.
  Status check_batch(uint64_t samples) const {
    return model_->check_batch(samples, /*training=*/false,
                               "a batch of " + std::to_string(samples) +
                                   " samples (--batch sets the size; the last one is the rest)");
  }

  // Floats (B, classes) or (B, T, classes), contiguous. `inputs`: as SampleReader makes them.
  // LibTorch's exceptions pass through.
  at::Tensor logits(const data::SampleShape& shape, const void* inputs, uint64_t samples) const;

 private:
  OpenModel() = default;

  std::unique_ptr<Model> model_;
  ModelTensors tensors_;
  uint32_t classes_ = 0;
  at::ScalarType compute_type_ = at::kFloat;
  bool is_fast_ = false;
};

}  // namespace lockstep
