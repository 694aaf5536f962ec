// The messages of Arrow's file and stream formats (file_layout.h), for code that writes bodies.
//
// INVARIANTS
//  W1 A body begins at a multiple of 64 bytes of the file, and so does every buffer in a body.
//  W2 The same schema, batches and sizes give the same bytes.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/file_layout.h"
#include "data/arrow/flat_messages.h"

namespace lockstep::data {

inline constexpr uint64_t kArrowAlignBytes = 64;

// The writer keeps its output as text.
inline std::span<const uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline constexpr uint64_t arrow_aligned(uint64_t bytes) {
  return (bytes + kArrowAlignBytes - 1) / kArrowAlignBytes * kArrowAlignBytes;
}

// The begin of a file. A stream begins with the schema's message instead.
std::string arrow_file_head();

// `at`: where in the file the message will lie. REQUIRES: every field is one of kInt, kFloat,
// kBinary, kLargeBinary, kFixedBinary, kList, kLargeList and kFixedList.
std::string schema_message(const ArrowSchema& schema, uint64_t at);

// Sets the offsets of the buffers, one after another from the start of the body. Returns the bytes
// of the padded body.
uint64_t lay_out(ArrowBatch& batch);

// REQUIRES: lay_out() has set the offsets and returned `body_bytes`.
std::string batch_message(const ArrowBatch& batch, uint64_t body_bytes, uint64_t at);

std::string arrow_stream_end();

// The end of a file, with the end of the stream.
std::string arrow_file_end(const ArrowSchema& schema, std::span<const ArrowBlock> batches);

}  // namespace lockstep::data
