// The values of a column in an uncompressed batch. The caller states how many values there must be
// and gets them only if all of them lie within their buffer.
//
// Thread-safety: pure functions over memory that does not change. If it changes, the values read
// are wrong, but every read stays within the buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/file_layout.h"

namespace lockstep::data {

// A field in a batch.
struct ArrowPart {
  const ArrowField* field = nullptr;
  ArrowNode node;
  std::span<const ArrowBuffer> buffers;  // the part's own
};

// A column of the schema, followed by its children, in the order of the schema. Layout and batch
// outlive the parts.
std::vector<ArrowPart> parts_of(const ArrowSchema& schema, const ArrowBatch& batch, size_t column);

// Errors of the functions below are kBadData, also if a row has no value. The messages go on after
// the file's name.
Status check_no_nulls(const ArrowPart& part);

// For numbers and fixed binary: a pointer to the first of node.rows values of field->width bytes.
Result<const uint8_t*> fixed_values(std::span<const uint8_t> file, const ArrowPart& part);

// For binary and lists: calls each(row, begin, end) for every row, until a call is not ok. begin <=
// end <= `limit`. Rows follow each other without a gap.
using ArrowRangeFn = std::function<Status(uint64_t row, uint64_t begin, uint64_t end)>;
Status walk_offsets(std::span<const uint8_t> file, const ArrowPart& part, uint64_t limit,
                    const ArrowRangeFn& each);

// A number of a column as stored. REQUIRES: kInt; `at` points to the column's first number.
int64_t arrow_integer(const ArrowField& field, const uint8_t* at, uint64_t row);

}  // namespace lockstep::data
