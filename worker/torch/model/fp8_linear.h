// The product of a linear layer in 8-bit floats (train.precision fp8), forward and backward.
//
//   forward        y  = x8  · w8ᵀ      x8, w8: E4M3
//   backward       dx = dy8 · w8       dy8: E5M2
//                  dw = dy8ᵀ · x8
//
// Every operand is cast from bf16 with one scale for the whole tensor (worker/cuda/kernels/fp8.h),
// which is a tensor of one slot. So the bits depend on the slot and the weights alone. Products
// come out as bf16. Autograd keeps x8 and w8 until backward, not x and w.
//
// A GPU multiplies with LibTorch's _scaled_mm. A CPU multiplies the same values as bf16, which
// holds them all: 2.3 to 3 times as fast as _scaled_mm on a CPU, with the same bits for any number
// of threads.
//
// INVARIANTS
//  F1 Rows are padded with zeros to a multiple of 16, so a slot may have any number of samples.
//
// Errors: LibTorch's exceptions pass through. If a kernel cannot be launched, throws c10::Error.
//
// Thread-safety: as Model::forward().
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/cuda/kernels/layer_kernels.h"

namespace lockstep {

// x: (..., K), weight: (N, K) -> (..., N). Both are cast to bf16 first. `kernels` of the device of
// x; null: the host's memory. REQUIRES: K and N are multiples of 16.
at::Tensor fp8_linear(const at::Tensor& x, const at::Tensor& weight, Fp8Kernels* kernels);

// A matrix in fp8, and the factor that undoes its scale: one float on the same device.
struct Fp8Matrix {
  at::Tensor values;
  at::Tensor inverse_scale;
};

// a: (M, K), b: (N, K) -> a · bᵀ (M, N) in bf16. `is_fast`: sums may have fewer bits on the way, on
// a GPU. REQUIRES: M, N and K are multiples of 16; at most one is E5M2.
at::Tensor fp8_matmul(const Fp8Matrix& a, const Fp8Matrix& b, bool is_fast);

}  // namespace lockstep
