// Files that are compressed as a whole (gzip, Zstandard), with any content.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/base/status.h"
#include "data/files/gzip.h"

namespace lockstep::data {

enum class WholeCodec : uint8_t { kNone, kGzip, kZstd };

// Decides by the first bytes of a file.
WholeCodec whole_codec(std::span<const uint8_t> begin);

// Inflates all of the file into `sink`. The memory it needs does not depend on the content. If an
// index states the inflated size, `promised` is that size, and the file must inflate to exactly it.
// Without `promised`, the file may inflate to limits::kWholeInflateRatio times its size. kBadData,
// with a message that goes on after the file's name, also for a `promised` above that limit. Passes
// on errors of `sink`. REQUIRES: not kNone.
Status inflate_whole(WholeCodec codec, std::span<const uint8_t> file,
                     std::optional<uint64_t> promised, const ByteSink& sink);

}  // namespace lockstep::data
