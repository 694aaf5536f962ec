// Turns the i-th number of a random stream (prng.h) into a choice.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "comm/base/prng.h"

namespace lockstep {

// [0, 1), in steps of 2^-53
constexpr double unit(uint64_t key, uint64_t i) {
  return static_cast<double>(stream_value(key, i) >> 11) * 0x1p-53;
}

// [0, bound). REQUIRES: bound > 0. The bias is below 2^-32 for bounds below 2^32.
constexpr uint64_t below(uint64_t key, uint64_t i, uint64_t bound) {
  return stream_value(key, i) % bound;
}

}  // namespace lockstep
