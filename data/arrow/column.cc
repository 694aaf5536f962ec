#include "data/arrow/column.h"

#include <string>

#include "comm/base/little_endian.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

// Where in a batch the nodes and buffers of a field begin.
struct Place {
  size_t node = 0;
  size_t buffer = 0;
  size_t view = 0;
};

// A3 of the layout holds, so everything is there.
void add_parts(const ArrowField& field, const ArrowBatch& batch, Place& place,
               std::vector<ArrowPart>* parts) {
  size_t buffers = field.buffers;
  if (field.is_view) buffers += batch.variadic[place.view++];
  if (parts != nullptr)
    parts->push_back(
        {&field, batch.nodes[place.node], std::span(batch.buffers).subspan(place.buffer, buffers)});
  ++place.node;
  place.buffer += buffers;
  for (const ArrowField& child : field.children) add_parts(child, batch, place, parts);
}

uint64_t offset_at(const uint8_t* at, bool is_large, uint64_t i) {
  if (is_large) return load_le<uint64_t>(at + 8 * i);
  return static_cast<uint64_t>(int64_t{load_le<int32_t>(at + 4 * i)});  // negative: beyond all
}

}  // namespace

std::vector<ArrowPart> parts_of(const ArrowSchema& schema, const ArrowBatch& batch, size_t column) {
  Place place;
  std::vector<ArrowPart> parts;
  for (size_t i = 0; i <= column; ++i)
    add_parts(schema.fields[i], batch, place, i == column ? &parts : nullptr);
  return parts;
}

Status check_no_nulls(const ArrowPart& part) {
  if (part.node.nulls == 0) return Status::ok();
  return bad("has " + std::to_string(part.node.nulls) + " rows without a value in column " +
             part.field->name + "; take these rows out");
}

Result<const uint8_t*> fixed_values(std::span<const uint8_t> file, const ArrowPart& part) {
  LOCKSTEP_RETURN_IF_ERROR(check_no_nulls(part));
  const ArrowBuffer& buffer = part.buffers[1];
  if (part.node.rows > buffer.bytes / part.field->width)
    return bad("is damaged: column " + part.field->name + " is shorter than its batch");
  return file.data() + buffer.offset;
}

Status walk_offsets(std::span<const uint8_t> file, const ArrowPart& part, uint64_t limit,
                    const ArrowRangeFn& each) {
  LOCKSTEP_RETURN_IF_ERROR(check_no_nulls(part));
  if (part.node.rows == 0) return Status::ok();
  const bool is_large =
      part.field->kind == ArrowKind::kLargeBinary || part.field->kind == ArrowKind::kLargeList;
  const ArrowBuffer& buffer = part.buffers[1];
  if (part.node.rows >= buffer.bytes / (is_large ? 8 : 4))  // one more than rows
    return bad("is damaged: column " + part.field->name + " has fewer offsets than rows");
  const uint8_t* offsets = file.data() + buffer.offset;
  uint64_t begin = offset_at(offsets, is_large, 0);
  for (uint64_t row = 0; row < part.node.rows; ++row) {
    const uint64_t end = offset_at(offsets, is_large, row + 1);
    if (begin > end || end > limit)
      return bad("is damaged: row " + std::to_string(row) + " of a batch has offsets in column " +
                 part.field->name + " that " +
                 (begin > end ? "go backwards" : "reach beyond its values"));
    LOCKSTEP_RETURN_IF_ERROR(each(row, begin, end));
    begin = end;
  }
  return Status::ok();
}

int64_t arrow_integer(const ArrowField& field, const uint8_t* at, uint64_t row) {
  at += row * field.width;
  switch (field.width) {
    case 1:
      return field.is_signed ? load_le<int8_t>(at) : int64_t{load_le<uint8_t>(at)};
    case 2:
      return field.is_signed ? load_le<int16_t>(at) : int64_t{load_le<uint16_t>(at)};
    case 4:
      return field.is_signed ? load_le<int32_t>(at) : int64_t{load_le<uint32_t>(at)};
    default:
      return load_le<int64_t>(at);  // of a uint64 beyond that: negative, which is no label
  }
}

}  // namespace lockstep::data
