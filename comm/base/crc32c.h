// CRC-32C (Castagnoli) as RFC 3720, appendix B.4 has it, and as TFRecords carry it.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

uint32_t crc32c(std::string_view bytes);

// So that a CRC of bytes that hold CRCs is no trouble (TFRecord:
// tensorflow/core/lib/hash/crc32c.h).
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lockstep
