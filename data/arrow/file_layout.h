// Finds where the columns of an Arrow IPC file lie in the file. Lockstep reads two formats: the
// file format (magic ARROW1, with a footer) and the stream format (one message after another).
// Hugging Face's datasets write the stream format under the ending of the file format.
//
//   file:    "ARROW1\0\0" | stream | footer | length of the footer (4) | "ARROW1"
//   stream:  message of the schema | messages of record batches ... | FFFFFFFF 00000000
//   message: FFFFFFFF | length of the metadata (4) | metadata, padded | body: buffers
//
// Numbers are little-endian, metadata is FlatBuffers. The parser copies every message before
// checking it, since a mapped file may change meanwhile.
//
// INVARIANTS of a layout that parse_arrow() returns
//  A1 Every buffer lies within the file, and begins at or after the end of the buffer before.
//  A2 Batches follow each other without overlapping, so two samples never share a byte. The layout
//     does not check what a column itself says of its values: column.h does.
//  A3 Every batch has the nodes and buffers that the schema asks for. The columns of a batch have
//     the batch's number of rows.
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

// True for the magic of the file format. A stream has no magic that would tell it from other data.
bool is_arrow_file(std::span<const uint8_t> bytes);

// kBadData: the message goes on after the file's name.
Result<ArrowLayout> parse_arrow(std::span<const uint8_t> file);

}  // namespace lockstep::data
