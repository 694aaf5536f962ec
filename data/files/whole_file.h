// Files that are compressed as a whole (gzip, Zstandard), whatever is in them.
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

// By the first bytes of a file.
WholeCodec whole_codec(std::span<const uint8_t> begin);

// Inflates all of the file into `sink`, in memory that does not depend on what it says. `promised`:
// what an index says that it inflates to, and then it is exactly that; else at most
// limits::kWholeInflateRatio times its size. kBadData going on after the file's name, also of what
// promises more than that; and what `sink` says. REQUIRES: not kNone.
Status inflate_whole(WholeCodec codec, std::span<const uint8_t> file,
                     std::optional<uint64_t> promised, const ByteSink& sink);

}  // namespace lockstep::data
