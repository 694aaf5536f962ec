// Layers for which a device may have one kernel (LayerKernels in ForwardMode): that where it has
// one for the type of the activations, LibTorch's operators else. Both compute the same; but for
// dropout their bits differ, as those of two devices do.
//
// Errors: a kernel that cannot be launched throws c10::Error, as LibTorch's operators do.
//
// Thread-safety: as Model::forward().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/model/layers.h"

namespace lockstep {

// The residual stream and its layer normalisation, (..., width) both.
struct Normed {
  at::Tensor stream;
  at::Tensor y;
};

// stream = x + branch; an undefined branch is none. Under autocast to bf16 the kernel's stream is
// bf16, LibTorch's stays float.
Normed add_and_norm(const Forward& f, const at::Tensor& x, const at::Tensor& branch,
                    uint32_t weight);

// x: (..., in) -> (..., out), behind it GPT-2's GELU.
at::Tensor linear_gelu(const Forward& f, const at::Tensor& x, uint32_t weight);

// x: (..., E) -> (..., vocab), by the embedding (vocab, E). With kernels the matrix that they are
// a view of has rows of a multiple of kVocabularyStep, as matrix products on a GPU like them. What
// is beyond the vocabulary is not part of the model: zero, with zero gradients.
inline constexpr int64_t kVocabularyStep = 128;
at::Tensor tied_logits(const Forward& f, const at::Tensor& x, const at::Tensor& embedding);

// x times its mask; `layer` tells several dropouts of one forward apart. Nothing in evaluation.
at::Tensor dropout(const Forward& f, const at::Tensor& x, double p, uint32_t layer);

}  // namespace lockstep
