// The losses of a slot's samples as memory that can be added up, and their gradient.
//
// Thread-safety: free functions.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/cuda/kernels/slot_values.h"
#include "worker/engine/loss.h"
#include "worker/torch/model/model.h"

namespace lockstep {

// The rows that the output has.
SampleRows rows_of(const ModelOutput& output);
// The rows as one tensor of floats, without gradient: (rows, samples).
at::Tensor sample_rows(const ModelOutput& output);

// loss_scale / step_labels for every loss.
at::Tensor losses_gradient(const at::Tensor& losses, const SlotValues& values);

}  // namespace lockstep
