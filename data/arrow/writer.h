// The messages of Arrow's file and stream formats, as layout.h has them, for who writes bodies.
//
// INVARIANTS
//  W1 A body begins at a multiple of 64 bytes of the file, and so does every buffer in it.
//  W2 The same bytes for the same schema, batches and sizes.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/flat_messages.h"
#include "data/arrow/layout.h"

namespace lockstep::data {

inline constexpr uint64_t kArrowAlignBytes = 64;

// What is written is kept as text.
inline std::span<const uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline constexpr uint64_t arrow_aligned(uint64_t bytes) {
  return (bytes + kArrowAlignBytes - 1) / kArrowAlignBytes * kArrowAlignBytes;
}

// What a file begins with. A stream begins with the schema's message.
std::string arrow_file_head();

// `at`: where in the file it will stand. REQUIRES: every field is one of kInt, kBinary,
// kLargeBinary, kFixedBinary, kList, kLargeList and kFixedList.
std::string schema_message(const ArrowSchema& schema, uint64_t at);

// Puts the buffers one after another from the body's begin: sets their offsets, and gives the bytes
// of the body, padded.
uint64_t lay_out(ArrowBatch& batch);

// REQUIRES: offsets as lay_out() sets them; its answer.
std::string batch_message(const ArrowBatch& batch, uint64_t body_bytes, uint64_t at);

std::string arrow_stream_end();

// What ends a file, with the stream's end.
std::string arrow_file_end(const ArrowSchema& schema, std::span<const ArrowBlock> batches);

}  // namespace lockstep::data
