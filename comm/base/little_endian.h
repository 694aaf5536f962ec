// Whole numbers as most file formats store them.
// Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

// Reads from any address, aligned or not. REQUIRES: sizeof(T) bytes at `at`.
template <typename T>
T load_le(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline void append_le64(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace lockstep
