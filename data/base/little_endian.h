// Whole numbers as most file formats store them.
// Thread-safety: a pure function.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace lockstep::data {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

// Reads from any address, aligned or not. REQUIRES: sizeof(T) bytes at `at`.
template <typename T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace lockstep::data
