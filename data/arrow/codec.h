// Buffers of Arrow's files, compressed each by itself (LZ4 frames, Zstandard): the length of what
// is inside (8 bytes, little-endian; -1 where it is stored as it is), and behind it that.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "comm/base/status.h"
#include "data/arrow/layout.h"

namespace lockstep::data {

// What the buffer says that it inflates to; nothing where it is empty. kBadData going on after the
// file's name.
Result<uint64_t> inflated_bytes(std::span<const uint8_t> buffer);

// Exactly inflated_bytes() into `sink`, piece by piece, in memory that does not depend on what the
// buffer says. kBadData, as above, where it holds more or less or is damaged; and what `sink` says.
using ArrowSink = std::function<Status(std::span<const uint8_t>)>;
Status inflate_buffer(ArrowCodec codec, std::span<const uint8_t> buffer, const ArrowSink& sink);

// Appends `plain` as such a buffer, stored where it does not get smaller. The same bytes for the
// same version of the library. REQUIRES: not kNone.
void append_packed(ArrowCodec codec, std::span<const uint8_t> plain, std::string& out);

}  // namespace lockstep::data
