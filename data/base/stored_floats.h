// Floats of files become float32: float16, float32 and float64 in little-endian order.
//
// Thread-safety: pure functions over memory that may change. If it changes, the values are wrong,
// but every read stays within the memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::data {

// Writes `count` float32 values. `stored`: as many, of `bytes` bytes each, at any address. False if
// one of them is NaN, infinite or beyond float32. REQUIRES: `bytes` is 2, 4 or 8.
bool copy_floats(const uint8_t* stored, uint32_t bytes, uint64_t count, std::byte* out);

}  // namespace lockstep::data
