// An Arrow file with compressed buffers as one without: a stream of some of its columns.
//
// Thread-safety: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/layout.h"

namespace lockstep::data {

// Takes the next piece of the stream, which will have `bytes` altogether.
using ArrowStreamSink = std::function<Status(std::span<const uint8_t> piece, uint64_t bytes)>;

// `columns` of the schema, rising. Of a struct only its child `bytes` is kept, under the struct's
// name. kBadData going on after the file's name: where it would become more than
// limits::kArrowInflateRatio times its size (and a few MB), is damaged, or a row has no value.
Status inflate_arrow(std::span<const uint8_t> file, const ArrowLayout& layout,
                     const std::vector<size_t>& columns, const ArrowStreamSink& sink);

}  // namespace lockstep::data
