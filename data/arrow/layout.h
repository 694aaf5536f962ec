// Where the columns of an Arrow IPC file lie in it. The file format (magic ARROW1, with a footer)
// and the stream format (one message after another), which Hugging Face's datasets write under the
// same ending, are both read.
//
//   file:    "ARROW1\0\0" | stream | footer | length of the footer (4) | "ARROW1"
//   stream:  message of the schema | messages of record batches ... | FFFFFFFF 00000000
//   message: FFFFFFFF | length of the metadata (4) | metadata, padded | body: buffers
//
// numbers little-endian, metadata FlatBuffers. Every message is copied before it is checked, since
// a mapped file may change while it is looked at.
//
// INVARIANTS, of a layout that parse_arrow() has given
//  A1 Every buffer lies within the file, and none begins before the one before it has ended.
//  A2 Batches follow each other without overlapping, so that no byte is two samples' (but what a
//     column itself says of its values is not looked at here: column.h).
//  A3 Every batch has the nodes and buffers that the schema asks for, and its columns its rows.
//
// Source: https://arrow.apache.org/docs/format/Columnar.html, "Serialization and Interprocess
// Communication (IPC)".
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/record_batch.h"
#include "data/arrow/schema.h"

namespace lockstep::data {

struct ArrowLayout {
  ArrowSchema schema;
  std::vector<ArrowBatch> batches;

  bool is_compressed() const;
};

// Whether it begins as a file; nothing tells a stream from other data.
bool is_arrow_file(std::span<const uint8_t> bytes);

// kBadData going on after the file's name.
Result<ArrowLayout> parse_arrow(std::span<const uint8_t> file);

}  // namespace lockstep::data
