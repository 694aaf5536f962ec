// Turns an Arrow file with compressed buffers into an uncompressed stream of some of its columns.
//
// Thread-safety: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/file_layout.h"

namespace lockstep::data {

// Takes the next piece of the stream. `bytes`: the length of the whole stream.
using ArrowStreamSink = std::function<Status(std::span<const uint8_t> piece, uint64_t bytes)>;

// `columns`: column numbers of the schema, rising. A struct keeps only its child `bytes`, under the
// struct's name. kBadData, with a message that goes on after the file's name, if
// - the stream would exceed limits::kArrowInflateRatio times the file's size (and a few MB)
// - the file is damaged
// - a row has no value
Status inflate_arrow(std::span<const uint8_t> file, const ArrowLayout& layout,
                     const std::vector<size_t>& columns, const ArrowStreamSink& sink);

}  // namespace lockstep::data
