// The arithmetic of Muon: operators of LibTorch, in the order of torch.optim.Muon, on the CPU or on
// a GPU. The Newton-Schulz iteration has the values of bfloat16. A CPU multiplies them in float32
// and rounds each product, so it has the bits of float32 products (the fingerprint's `results`).
//
// Cost: 5 steps of 3 products a matrix; for (m, n) with m <= n that is 5 m m (4 n + 2 m)
// multiplications and additions. Memory: about four copies of the largest matrix.
//
// Errors: LibTorch's exceptions pass through.
// Thread-safety: pure functions; memory that overlaps in concurrent calls must not.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "worker/optim/muon.h"

namespace lockstep {

// update_matrix() of each matrix, in order. The buffers are memory of `where`. On a device the
// operators run on the current stream, and the call does not wait for them.
void update_matrices(const wire::OptimizerSpec& spec, at::Device where,
                     std::span<const MatrixSegment> matrices, const OptimizerStep& step,
                     std::span<const OptimizerGroup> groups, const MatrixBuffers& buffers);

}  // namespace lockstep
