// Appends unsigned 64-bit little-endian integers to byte strings.
//
// Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

namespace lockstep {

// The formats are little-endian, and tensors go to the file as they lie in memory.
static_assert(std::endian::native == std::endian::little);

inline void append_le64(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace lockstep
