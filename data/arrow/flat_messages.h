// The metadata of Arrow's messages as values, checked; layout.h says where they stand.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/record_batch.h"
#include "data/arrow/schema.h"

namespace lockstep::data {

struct ArrowBlock {
  uint64_t offset = 0;
  uint64_t metadata_bytes = 0;
  uint64_t body_bytes = 0;
};

struct ArrowFooter {
  ArrowSchema schema;
  std::vector<ArrowBlock> batches;
};

struct ArrowPassed {};  // a message that holds neither columns nor batch

struct ArrowMessage {
  uint64_t body_bytes = 0;
  // Of a batch the offsets of buffers count from its body's begin.
  std::variant<ArrowPassed, ArrowSchema, ArrowBatch> content;
};

// `bytes` are nobody else's, and aligned for numbers of 8 bytes. kBadData going on after the file's
// name.
Result<ArrowFooter> read_arrow_footer(std::span<const uint8_t> bytes);
Result<ArrowMessage> read_arrow_message(std::span<const uint8_t> bytes);

}  // namespace lockstep::data
