#include "data/arrow/inflate.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "comm/base/limits.h"
#include "data/arrow/codec.h"
#include "data/arrow/column.h"
#include "data/arrow/writer.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

constexpr std::array<uint8_t, kArrowAlignBytes> kPadding{};

const ArrowField* kept(const ArrowField& field) {
  if (field.kind != ArrowKind::kStruct) return &field;
  for (const ArrowField& child : field.children)
    if (child.name == "bytes") return &child;
  return nullptr;
}

// The kept part of a batch, and the batch made of it.
struct Planned {
  const ArrowBatch* from = nullptr;
  std::vector<ArrowBuffer> packed;  // in the file
  ArrowBatch to;                    // offsets from its body's begin
  uint64_t body_bytes = 0;
  std::string message;
};

struct Plan {
  std::string schema;
  std::vector<Planned> batches;
  uint64_t bytes = 0;
};

// REQUIRES of `columns`: each is kept.
ArrowSchema schema_in(const ArrowSchema& from, const std::vector<size_t>& columns) {
  ArrowSchema schema;
  schema.metadata = from.metadata;
  for (const size_t column : columns) {
    ArrowField field = *kept(from.fields[column]);
    field.name = from.fields[column].name;
    schema.fields.push_back(std::move(field));
  }
  return schema;
}

Status plan_buffer(std::span<const uint8_t> file, const ArrowBuffer& buffer, uint64_t limit,
                   Planned& planned) {
  uint64_t bytes = buffer.bytes;
  if (planned.from->codec != ArrowCodec::kNone) {
    LOCKSTEP_ASSIGN_OR_RETURN(bytes, inflated_bytes(file.subspan(buffer.offset, buffer.bytes)));
  }
  // Checked before any sum: it may be any number.
  if (bytes > limit)
    return bad(
        "claims to inflate to more than " + std::to_string(limits::kArrowInflateRatio) +
        " times its size, which looks damaged; if it is sound, write it without compression");
  planned.packed.push_back(buffer);
  planned.to.buffers.push_back({0, bytes});
  return Status::ok();
}

Status plan_column(std::span<const uint8_t> file, const ArrowSchema& schema, size_t column,
                   uint64_t limit, Planned& planned) {
  const ArrowField* wanted = kept(schema.fields[column]);
  for (const ArrowPart& part : parts_of(schema, *planned.from, column)) {
    const bool is_whole = wanted == &schema.fields[column];
    if (!is_whole && part.field != wanted && part.field != &schema.fields[column]) continue;
    LOCKSTEP_RETURN_IF_ERROR(check_no_nulls(part));
    if (!is_whole && part.field != wanted) continue;  // the struct itself
    planned.to.nodes.push_back(part.node);
    if (!is_whole)
      planned.to.nodes.back().rows = planned.to.rows;  // a struct's child may have more
    for (size_t i = 0; i < part.buffers.size(); ++i) {
      const bool is_validity = i == 0;  // every row has a value
      LOCKSTEP_RETURN_IF_ERROR(
          plan_buffer(file, is_validity ? ArrowBuffer{} : part.buffers[i], limit, planned));
    }
  }
  return Status::ok();
}

Result<Plan> plan_of(std::span<const uint8_t> file, const ArrowLayout& layout,
                     const std::vector<size_t>& columns) {
  const uint64_t limit = std::min(
      file.size() * limits::kArrowInflateRatio + limits::kArrowInflateBytes, limits::kDatasetBytes);
  Plan plan;
  plan.schema = schema_message(schema_in(layout.schema, columns), 0);
  plan.bytes = plan.schema.size();
  for (const ArrowBatch& batch : layout.batches) {
    Planned& planned = plan.batches.emplace_back();
    planned.from = &batch;
    planned.to.rows = batch.rows;
    for (const size_t column : columns)
      LOCKSTEP_RETURN_IF_ERROR(plan_column(file, layout.schema, column, limit, planned));
    planned.body_bytes = lay_out(planned.to);
    planned.message = batch_message(planned.to, planned.body_bytes, plan.bytes);
    plan.bytes += planned.message.size() + planned.body_bytes;
    if (plan.bytes > limit)
      return bad(
          "claims to inflate to more than " + std::to_string(limits::kArrowInflateRatio) +
          " times its size, which looks damaged; if it is sound, write it without compression");
  }
  plan.bytes += arrow_stream_end().size();
  return plan;
}

Status give_body(std::span<const uint8_t> file, const Planned& planned, uint64_t total,
                 const ArrowStreamSink& sink) {
  for (size_t i = 0; i < planned.packed.size(); ++i) {
    const ArrowBuffer& from = planned.packed[i];
    const auto bytes = file.subspan(from.offset, from.bytes);
    uint64_t given = 0;
    const auto give = [&](std::span<const uint8_t> piece) {
      given += piece.size();
      return sink(piece, total);
    };
    if (planned.from->codec == ArrowCodec::kNone) {
      LOCKSTEP_RETURN_IF_ERROR(give(bytes));
    } else {
      LOCKSTEP_RETURN_IF_ERROR(inflate_buffer(planned.from->codec, bytes, give));
    }
    // A file that changed meanwhile may give another length, which would shift everything after it.
    if (given != planned.to.buffers[i].bytes)
      return bad("changed while Lockstep inflated it; try again when nothing writes to it");
    LOCKSTEP_RETURN_IF_ERROR(sink(std::span(kPadding).first(arrow_aligned(given) - given), total));
  }
  return Status::ok();
}

}  // namespace

Status inflate_arrow(std::span<const uint8_t> file, const ArrowLayout& layout,
                     const std::vector<size_t>& columns, const ArrowStreamSink& sink) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Plan plan, plan_of(file, layout, columns));
  LOCKSTEP_RETURN_IF_ERROR(sink(as_bytes(plan.schema), plan.bytes));
  for (const Planned& planned : plan.batches) {
    LOCKSTEP_RETURN_IF_ERROR(sink(as_bytes(planned.message), plan.bytes));
    LOCKSTEP_RETURN_IF_ERROR(give_body(file, planned, plan.bytes, sink));
  }
  return sink(as_bytes(arrow_stream_end()), plan.bytes);
}

}  // namespace lockstep::data
