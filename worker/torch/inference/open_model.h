// A trained model, ready for batches of one kind: evaluation mode, no gradients. Computes the same
// as an evaluation of the run, bit for bit with the same batches and threads.
//
// Errors: from make_model() and load_own_weights(); kBadData if the samples do not fit the model,
// naming the data; kUsage for a plug-in without its run, and for predictions of a model that has
// nothing to make them with.
//
// Thread-safety: one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/loss_rules.h"
#include "data/dataset/sample_shape.h"
#include "worker/inference/trained_model.h"
#include "worker/torch/inference/model_tensors.h"
#include "worker/torch/model/model.h"

namespace lockstep {

// The data that a trained model is used on.
struct DataKind {
  std::string name;  // for messages
  data::SampleShape shape;
  uint32_t classes = 0;  // that they show
};

// The purpose of opening a model.
enum class ModelUse : uint8_t { kEvaluate, kPredict };

class OpenModel {
 public:
  static Result<OpenModel> open(const TrainedModel& model, const DataKind& data, ModelUse use);

  // The classes of the labels: 2 with one logit; 0 if the loss is the model's own, or the label is
  // a number.
  uint32_t label_classes() const;
  bool has_logits_of_classes() const {
    return loss_ == LossKind::kCrossEntropy && !own_loss().has_value();
  }
  bool label_is_number() const;  // LossRow::compares_numbers
  // train.loss bce: each logit is of a label of its own.
  bool gives_labels() const { return !own_loss() && loss_ == LossKind::kBce; }
  bool knows_right() const { return lockstep::knows_right(loss_, own_loss().has_value()); }
  // The mean loss is over samples, and not over labels.
  bool is_by_sample() const {
    return has_weights_ || lockstep::is_by_sample(loss_, own_loss().has_value());
  }
  const std::optional<OwnLoss>& own_loss() const { return model_->layout().own_loss; }

  // Samples of a batch that brings so many: more for a prediction, if the model takes no fewer.
  uint64_t padded(uint64_t samples) const;
  // kConfig unless the model takes batches of so many samples, padded.
  Status check_batch(uint64_t samples) const;

  // As the run's evaluation: floats (B, classes) or (B, T, classes), contiguous, or the losses of
  // samples. `inputs`, `labels`: as SampleReader makes them. LibTorch's exceptions pass through.
  ModelOutput evaluate(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
                       uint64_t samples) const;
  // The target that a number is compared with: labels (B), or the first target (B, ...).
  at::Tensor target(const data::SampleShape& shape, const int64_t* labels, uint64_t samples) const;
  // Floats (B, ...), contiguous. Reads only those fields of `labels` that are inputs. REQUIRES:
  // opened for kPredict.
  at::Tensor logits(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
                    uint64_t samples) const;

 private:
  OpenModel() = default;
  Status load_tensors(const TrainedModel& model, const wire::ModelSpec& spec, const DataKind& data);

  std::unique_ptr<Model> model_;
  ModelTensors tensors_;
  ModelUse use_ = ModelUse::kEvaluate;
  LossKind loss_ = LossKind::kCrossEntropy;
  uint32_t classes_ = 0;      // outputs_of()
  bool has_weights_ = false;  // data.weight
  at::ScalarType compute_type_ = at::kFloat;
  bool is_fast_ = false;
};

}  // namespace lockstep
