// Segments of a model that keep only their inputs (model.recompute). Backward computes the segment
// again and takes its gradients from there: less memory, one more forward, the same bits.
//
// INVARIANTS
//  R1 All tensors for which a segment needs a gradient are among its inputs, parameters included:
//     backward runs inside of autograd's backward, and gives each input one gradient. A parameter's
//     hook takes the first one for the whole (SlotGradients).
//  R2 A segment is a pure function of its inputs and of the values that its body holds. It draws
//     from no generator and updates no statistics.
//
// Errors: LibTorch's exceptions pass through.
// Thread-safety: as Model::forward(). The body runs again on autograd's thread for the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

namespace lockstep {

using SegmentBody = std::function<std::vector<at::Tensor>(std::span<const at::Tensor> inputs)>;

// The outputs of `body`. Autograd holds `body` until backward. No output is an input. Backward runs
// under the present autocast. REQUIRES: all tensors are defined.
std::vector<at::Tensor> recomputed(SegmentBody body, const std::vector<at::Tensor>& inputs);

}  // namespace lockstep
