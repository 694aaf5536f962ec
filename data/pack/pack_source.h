// One split of a data set in the form that `lockstep data pack` writes, cut into shards and
// batches. The cuts depend only on the content and the size of a shard, so a second call finds the
// same cuts.
//
//   pixels  image: fixed_size_list of uint8, an arrow.fixed_shape_tensor; label: int64
//   rows of a table  features: fixed_size_list of float32; label: int64. Or the targets that are
//                    named: float32, and int64 for the label; and the weight: float32
//   JPEG and PNG images, as they are  image: binary; label: int64
//   tokens  tokens: whole numbers of their stored width; or lists of them, if the files say where
//           documents end; both may go on in the next shard (token_source.h)
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/record_batch.h"
#include "data/arrow/schema.h"

namespace lockstep::data {

// Samples [begin, end), or tokens [begin, end) of a stream.
struct PackShard {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t rows = 0;  // of its file: samples, tokens, or parts of documents
  size_t stream = 0;
  uint64_t bytes = 0;  // of its content, as stored in the source
};

// The content of a batch, in the order of the schema, each field before its children; without
// nulls.
struct PackBatch {
  uint64_t rows = 0;
  uint64_t units = 0;  // samples, or tokens
  std::vector<ArrowNode> nodes;
  std::vector<std::string> buffers;
};

// Cuts `units` units of `unit_bytes` each into shards of about `shard_bytes`: of stream 0, a row
// for each unit.
std::vector<PackShard> cut_evenly(uint64_t units, uint64_t unit_bytes, uint64_t shard_bytes);

using GiveBatchFn = std::function<Status(const PackBatch&)>;

class PackSource {
 public:
  virtual ~PackSource() = default;
  PackSource() = default;
  PackSource(const PackSource&) = delete;
  PackSource& operator=(const PackSource&) = delete;

  virtual std::string fingerprint() const = 0;                      // of what is packed
  virtual const char* unit() const = 0;                             // "samples" or "tokens"
  const std::vector<PackShard>& shards() const { return shards_; }  // not empty

  virtual ArrowSchema schema(const PackShard& shard) const = 0;
  // Passes the shard's batches to `give` one after another, until a call is not ok. kBadData,
  // naming the file, if a file changed: then the batches given so far do not count.
  virtual Status read(const PackShard& shard, const GiveBatchFn& give) const = 0;

 protected:
  std::vector<PackShard> shards_;
};

}  // namespace lockstep::data
