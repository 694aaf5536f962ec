// The losses of train.loss for each sample of a slot: the mean over the sample's outputs, as
// PyTorch's functions of the same name with reduction "none". They compute in float32 for any
// train.precision. This computes cross-entropy only if samples have weights.
//
// Thread-safety: a free function.
#pragma once

#include <ATen/core/Tensor.h>

#include "comm/run/job/loss_kind.h"
#include "worker/torch/model/model.h"

namespace lockstep {

// Runs after a forward. If the model gives logits, and losses are computed by sample, sets losses
// from the logits (B, ...) and the first target: labels (B), or a field with as many elements a
// sample as the logits have; also `right` where a prediction can be right. Then multiplies losses
// by the weights of the samples. `labels`: of the same samples.
void finish_losses(LossKind kind, bool is_own_loss, const FieldTensors& fields,
                   const at::Tensor& labels, double label_smoothing, ModelOutput* output);

}  // namespace lockstep
