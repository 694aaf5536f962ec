// The results of the libraries in use for fixed numbers: a matrix product, a convolution with its
// gradients, and elementwise functions. Anything that chooses their kernels (a variable of any
// name, the processor, a library that was loaded in the place of another) shows in the bits.
//
// Thread-safety: free functions; LibTorch's settings of the calling thread count.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

// A hash of the results on the CPU, in fp32 and in `type`, with `in_fp8` also of products of linear
// layers in fp8. Takes about a millisecond.
std::string numerics_effect(at::ScalarType type, bool in_fp8 = false);

// The same on another device, and of attention with its gradients. LibTorch's exceptions pass
// through.
std::string numerics_effect_on(const at::Device& device, at::ScalarType type, bool in_fp8 = false);

// What compute() gives, twice. kInternal if the second result is another one: then the machine may
// be faulty, and another start may help.
Result<std::string> same_twice(const std::function<std::string()>& compute);

}  // namespace lockstep
