// The losses of train.loss other than cross-entropy, for each sample of a slot: the mean over what
// the model gives for the sample, as PyTorch's functions of the same name with reduction "none".
// They compute in float32, whatever train.precision is.
//
// Thread-safety: a free function.
#pragma once

#include <ATen/core/Tensor.h>

#include "comm/wire/loss_kind.h"
#include "worker/model/model.h"

namespace lockstep {

// Sets losses, and `right` where a prediction can be right, from the logits (B, 1) and the labels
// (B). REQUIRES: not cross-entropy.
void add_losses(LossKind kind, const at::Tensor& labels, ModelOutput* output);

}  // namespace lockstep
