// Inflating Zstandard (RFC 8878) from memory, piece by piece. Several frames are read as one, and
// the checksum of each that has one is verified before the end is reported.
//
// What the bytes say allocates at most kZstdWindowBytes; the caller bounds the output by what it
// asks for. All errors are kBadData, one clause without the file's name.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "comm/base/status.h"

namespace lockstep::data {

// Of what was inflated last, which the bytes may refer to: what zstd itself takes without --long.
inline constexpr uint64_t kZstdWindowBytes = uint64_t{1} << 27;

bool is_zstd(std::span<const uint8_t> bytes);

class ZstdReader {
 public:
  // `compressed` outlives the reader.
  explicit ZstdReader(std::span<const uint8_t> compressed);
  ~ZstdReader();
  ZstdReader(const ZstdReader&) = delete;
  ZstdReader& operator=(const ZstdReader&) = delete;

  // Fills `out` from its start; fewer bytes than asked for only at the verified end, then 0.
  Result<size_t> read(std::span<uint8_t> out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::data
