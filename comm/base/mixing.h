// Mixes the samples of a batch, for all code that does a part of it: the loader
// (data/transform/batch_mix.h), the loss, and kernels. It mixes each sample with the one before it,
// and the first with the last.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"

namespace lockstep {

// The index of the sample that `i` is mixed with, among `count`. REQUIRES: i < count.
LOCKSTEP_HOST_DEVICE uint64_t mixed_with(uint64_t i, uint64_t count) {
  return i == 0 ? count - 1 : i - 1;
}

// `share` is a multiple of 2^-24 from 0 to 1, so that 1 - share is exact as a float.
LOCKSTEP_HOST_DEVICE float mixed(float own, float other, float share) {
  return share * own + (1.0f - share) * other;
}

}  // namespace lockstep
