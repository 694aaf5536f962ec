// CRC-32C (Castagnoli), as in RFC 3720, appendix B.4, and in TFRecords.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

uint32_t crc32c(std::string_view bytes);

// Masked, so that a CRC of bytes that contain CRCs stays strong (TFRecord:
// tensorflow/core/lib/hash/crc32c.h).
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lockstep
