// Layers for which a device may have one kernel (LayerKernels in ForwardMode). Each function calls
// the kernel if the device has one for the type of the activations, else LibTorch's operators. Both
// compute the same function. Except for dropout, their bits differ, as the bits of two devices
// differ.
//
// Errors: if a kernel cannot be launched, throws c10::Error, as LibTorch's operators do.
//
// Thread-safety: as Model::forward().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/torch/model/layers.h"

namespace lockstep {

// The residual stream and its layer normalisation, both (..., width).
struct Normed {
  at::Tensor stream;
  at::Tensor y;
};

// stream = x + branch. An undefined branch counts as zero. Under autocast to bf16 the kernel's
// stream is bf16, and LibTorch's stays float.
Normed add_and_norm(const Forward& f, const at::Tensor& x, const at::Tensor& branch,
                    uint32_t weight);

// x: (..., in) -> (..., out). Applies GPT-2's GELU to the result of the linear layer.
at::Tensor linear_gelu(const Forward& f, const at::Tensor& x, uint32_t weight);

// x: (..., E) -> (..., vocab), by the embedding (vocab, E). With kernels the logits are a view of a
// matrix whose rows are a multiple of kVocabularyStep long, because matrix products on a GPU are
// faster so. The elements beyond the vocabulary are not part of the model: they are zero, with zero
// gradients.
inline constexpr int64_t kVocabularyStep = 128;
at::Tensor tied_logits(const Forward& f, const at::Tensor& x, const at::Tensor& embedding);

// x times its mask. `layer` tells the dropouts of one forward apart. Does nothing in evaluation.
at::Tensor dropout(const Forward& f, const at::Tensor& x, double p, uint32_t layer);

}  // namespace lockstep
