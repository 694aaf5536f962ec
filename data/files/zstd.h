// Inflates Zstandard (RFC 8878) from memory, piece by piece. Several frames read as one; the reader
// verifies the checksum of each frame that has one before it reports the end.
//
// Content makes the reader allocate at most kZstdWindowBytes. The caller bounds the output by what
// it asks for. All errors are kBadData, one clause without the file's name.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "comm/base/status.h"

namespace lockstep::data {

// The recently inflated bytes that the stream may refer to: what zstd itself takes without --long.
inline constexpr uint64_t kZstdWindowBytes = uint64_t{1} << 27;

bool is_zstd(std::span<const uint8_t> bytes);

class ZstdReader {
 public:
  // `compressed` outlives the reader.
  explicit ZstdReader(std::span<const uint8_t> compressed);
  ~ZstdReader();
  ZstdReader(const ZstdReader&) = delete;
  ZstdReader& operator=(const ZstdReader&) = delete;

  // Fills `out` from its start. Returns fewer bytes than asked for only at the verified end, then
  // 0.
  Result<size_t> read(std::span<uint8_t> out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::data
