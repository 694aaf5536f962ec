// The metadata of Arrow messages as checked values. file_layout.h says where the messages lie.
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

struct ArrowPassed {};  // a message with neither columns nor a batch

struct ArrowMessage {
  uint64_t body_bytes = 0;
  // The offsets of a batch's buffers count from the start of the batch's body.
  std::variant<ArrowPassed, ArrowSchema, ArrowBatch> content;
};

// REQUIRES: `bytes` do not change meanwhile, and are aligned for 8-byte numbers. kBadData: the
// message goes on after the file's name.
Result<ArrowFooter> read_arrow_footer(std::span<const uint8_t> bytes);
Result<ArrowMessage> read_arrow_message(std::span<const uint8_t> bytes);

}  // namespace lockstep::data
