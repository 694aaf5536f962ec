// The values of a column in a batch that is not compressed. Whoever asks for them says how many
// there must be, and gets them only where all of them lie within their buffer.
//
// Thread-safety: pure functions over memory that nobody writes; where somebody does, what is read
// is wrong, but read within its buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/layout.h"

namespace lockstep::data {

// A field in a batch.
struct ArrowPart {
  const ArrowField* field = nullptr;
  ArrowNode node;
  std::span<const ArrowBuffer> buffers;  // its own
};

// A column of the schema, and behind it what is below it, in the order of the schema. Layout and
// batch outlive them.
std::vector<ArrowPart> parts_of(const ArrowSchema& schema, const ArrowBatch& batch, size_t column);

// What they say goes on after the file's name. All are kBadData, also where a row has no value.
Status check_no_nulls(const ArrowPart& part);

// Of numbers and fixed binary: the first of node.rows values of field->width bytes.
Result<const uint8_t*> fixed_values(std::span<const uint8_t> file, const ArrowPart& part);

// Of binary and lists: each(row, begin, end) for every row, until one is not ok. begin <= end <=
// `limit`; rows follow each other without a gap.
using ArrowRangeFn = std::function<Status(uint64_t row, uint64_t begin, uint64_t end)>;
Status walk_offsets(std::span<const uint8_t> file, const ArrowPart& part, uint64_t limit,
                    const ArrowRangeFn& each);

// A number of a column as it is stored. REQUIRES: `at` is the place of its first; kInt.
int64_t arrow_integer(const ArrowField& field, const uint8_t* at, uint64_t row);

}  // namespace lockstep::data
