// Compressed buffers of Arrow files (LZ4 frames, Zstandard). Each buffer is compressed by itself. A
// buffer begins with the inflated length (8 bytes, little-endian; -1 for a buffer stored as it is).
// The compressed bytes follow.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "comm/base/status.h"
#include "data/arrow/file_layout.h"

namespace lockstep::data {

// The inflated length that the buffer states; empty for an empty buffer. kBadData: the message goes
// on after the file's name.
Result<uint64_t> inflated_bytes(std::span<const uint8_t> buffer);

// Writes exactly inflated_bytes() bytes into `sink`, piece by piece. The memory it needs does not
// depend on the content of the buffer. kBadData (as above) if the buffer holds more or fewer bytes
// or is damaged. Passes on errors of `sink`.
using ArrowSink = std::function<Status(std::span<const uint8_t>)>;
Status inflate_buffer(ArrowCodec codec, std::span<const uint8_t> buffer, const ArrowSink& sink);

// Appends `plain` as a compressed buffer, or stored as it is if compression does not make it
// smaller. The same version of the library gives the same bytes. REQUIRES: not kNone.
void append_packed(ArrowCodec codec, std::span<const uint8_t> plain, std::string& out);

}  // namespace lockstep::data
