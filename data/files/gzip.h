// Inflates from memory, piece by piece, with zlib. Several gzip (RFC 1952) members read as one; the
// reader verifies the CRC and length of each member before it reports the end. A bare stream (RFC
// 1951) ends where it says; its CRC lies elsewhere.
//
// Content never decides how much memory the reader allocates. The caller bounds the output by what
// it asks for. All errors are kBadData, one clause without the file's name.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/status.h"

namespace lockstep::data {

bool is_gzip(std::span<const uint8_t> bytes);

// kBadData: the message for a gzipped file that holds many samples.
Status gzipped_whole();

// The most that `compressed_bytes` may inflate to: limits::kWholeInflateRatio times as much, and
// `more`.
uint64_t most_inflated(uint64_t compressed_bytes, uint64_t more);

// kBadData: the message for a file that inflates to more.
Status inflates_too_much();

class GzipReader {
 public:
  enum class Wrapping { kGzip, kNone };
  // `compressed` outlives the reader.
  explicit GzipReader(std::span<const uint8_t> compressed, Wrapping wrapping = Wrapping::kGzip);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  uint64_t compressed_bytes() const;  // all of them

  // Fills `out` from its start. Returns fewer bytes than asked for only at the verified end, then
  // 0.
  Result<size_t> read(std::span<uint8_t> out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Takes the next piece of the inflated file. `bytes`: the length of the whole inflated file; 0: not
// known.
using ByteSink = std::function<Status(std::span<const uint8_t> piece, uint64_t bytes)>;

// Passes all that `reader` has left to `sink`, after the first `filled` bytes, which are in
// `piece`. kBadData unless these are exactly `promised` bytes together, and at once if `promised`
// is more than most_inflated() with limits::kArrayInflateBytes. REQUIRES: piece is not empty.
Status pass_on(GzipReader& reader, std::vector<uint8_t>& piece, size_t filled, uint64_t promised,
               const ByteSink& sink);

// The size of such a piece: it stays in the second-level cache.
inline constexpr size_t kInflatePieceBytes = 256 * kKib;

// Inflates a bare stream into `sink`: exactly `bytes` with this CRC-32, never more.
Status inflate_bare(std::span<const uint8_t> compressed, uint64_t bytes, uint32_t crc,
                    const ByteSink& sink);

// kBadData if `bytes` have another CRC-32.
Status check_crc32(std::span<const uint8_t> bytes, uint32_t crc);

}  // namespace lockstep::data
