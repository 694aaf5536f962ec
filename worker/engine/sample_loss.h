// The losses of train.loss for each sample of a slot: the mean over what the model gives for the
// sample, as PyTorch's functions of the same name with reduction "none". They compute in float32,
// whatever train.precision is. Cross-entropy is computed here only where samples have weights.
//
// Thread-safety: a free function.
#pragma once

#include <ATen/core/Tensor.h>

#include "comm/wire/loss_kind.h"
#include "worker/model/model.h"

namespace lockstep {

// Sets losses, and `right` where a prediction can be right, from the logits (B, ...) and the
// target: labels (B), or a field with as many elements a sample as the logits have.
void add_losses(LossKind kind, const at::Tensor& target, double label_smoothing,
                ModelOutput* output);

}  // namespace lockstep
