// CRC-32C (Castagnoli), as in RFC 3720, appendix B.4, and in TFRecords. It finds every burst of up
// to 32 flipped bits, and misses other damage once in 2^32.
//
// x86-64 with SSE 4.2 computes it by the processor's instruction, in three streams at a time
// because one instruction waits for the one before; other processors by tables, eight bytes at a
// time.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

uint32_t crc32c(std::string_view bytes);

// The CRC of bytes that come in pieces: `crc` is the CRC of the pieces before, 0 before the first.
uint32_t extend_crc32c(uint32_t crc, std::string_view more);

// The same by tables, on any processor.
uint32_t extend_crc32c_by_tables(uint32_t crc, std::string_view more);

// Masked, so that a CRC of bytes that contain CRCs stays strong (TFRecord:
// tensorflow/core/lib/hash/crc32c.h).
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lockstep
