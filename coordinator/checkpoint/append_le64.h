// Unsigned 64-bit little-endian integers in byte strings, whatever the machine's own order.
// Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

namespace lockstep {

// Tensors are written as they lie in memory, and the formats say little-endian.
static_assert(std::endian::native == std::endian::little);

inline void append_le64(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace lockstep
