// Where the columns of one batch lie in an Arrow file.
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::data {

enum class ArrowCodec { kNone, kLz4, kZstd };

struct ArrowBuffer {
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;   // in the file; a compressed buffer includes its length in front
};

struct ArrowNode {
  uint64_t rows = 0;
  uint64_t nulls = 0;  // as the writer says
};

struct ArrowBatch {
  uint64_t rows = 0;
  ArrowCodec codec = ArrowCodec::kNone;
  std::vector<ArrowNode> nodes;      // in the order of the schema, each field before its children
  std::vector<ArrowBuffer> buffers;  // in the same order
  std::vector<uint64_t> variadic;    // for each view: how many more buffers the view has
};

}  // namespace lockstep::data
