// Reading gzip from memory, piece by piece (RFC 1952, by zlib): several members are read as one,
// and the CRC and length of each are verified before the end is reported.
//
// Nothing is allocated by what the bytes say; the caller bounds the output by what it asks for.
// All errors are kBadData, one clause without the file's name.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "comm/base/status.h"
#include "data/index/idx_header.h"

namespace lockstep::data {

bool is_gzip(std::span<const uint8_t> bytes);

class GzipReader {
 public:
  // `compressed` outlives the reader.
  explicit GzipReader(std::span<const uint8_t> compressed);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Fills `out` from its start; fewer bytes than asked for only at the verified end, then 0.
  Result<size_t> read(std::span<uint8_t> out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Takes the next piece of the inflated file.
using ByteSink = std::function<Status(std::span<const uint8_t>)>;

// Inflates a whole IDX file into `sink`, header included: exactly as many bytes as its header
// promises, never more (a file that holds more or less is refused).
Result<IdxHeader> inflate_idx(std::span<const uint8_t> compressed, const ByteSink& sink);

}  // namespace lockstep::data
