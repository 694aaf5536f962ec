#include "data/arrow/file_layout.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "comm/base/limits.h"
#include "comm/base/little_endian.h"
#include "data/arrow/flat_messages.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kMagic = "ARROW1";
constexpr uint64_t kMagicBytes = 8;  // padded
constexpr uint64_t kTailBytes = 4 + kMagic.size();
constexpr uint32_t kContinues = 0xFFFFFFFF;
constexpr uint64_t kPrefixBytes = 8;  // of a message

Status truncated() {
  return bad("is truncated, or not an Arrow file; copy it again, or name another file");
}

// A copy, aligned for its content, that no other process can change.
class Copy {
 public:
  explicit Copy(std::span<const uint8_t> bytes)
      : words_((bytes.size() + 7) / 8), size_(bytes.size()) {
    if (size_ > 0) std::memcpy(words_.data(), bytes.data(), size_);
  }
  std::span<const uint8_t> bytes() const {
    return {reinterpret_cast<const uint8_t*>(words_.data()), size_};
  }

 private:
  std::vector<uint64_t> words_;
  size_t size_;
};

struct Placed {
  ArrowMessage message;
  uint64_t body = 0;  // where it begins
  uint64_t end = 0;   // the byte after it
};

// The message at `at`, whose metadata and body end at `end` or before.
Result<Placed> message_at(std::span<const uint8_t> file, uint64_t at, uint64_t end) {
  if (end - at < kPrefixBytes) return truncated();
  if (load_le<uint32_t>(file.data() + at) != kContinues)
    return bad("is damaged, or written by Arrow before 0.15: no message begins at byte " +
               std::to_string(at));
  const uint64_t bytes = load_le<uint32_t>(file.data() + at + 4);
  if (bytes > limits::kArrowMetadataBytes)
    return bad("has a message of " + std::to_string(bytes) + " bytes, the limit is " +
               std::to_string(limits::kArrowMetadataBytes));
  if (bytes > end - at - kPrefixBytes) return truncated();
  const Copy copy(file.subspan(at + kPrefixBytes, bytes));
  Placed placed;
  LOCKSTEP_ASSIGN_OR_RETURN(placed.message, read_arrow_message(copy.bytes()));
  placed.body = at + kPrefixBytes + bytes;
  if (placed.message.body_bytes > end - placed.body) return truncated();
  placed.end = placed.body + placed.message.body_bytes;
  return placed;
}

// Nodes and buffers that a field and what is below it ask for.
Status count(const ArrowField& field, const ArrowBatch& batch, size_t& views, uint64_t& buffers) {
  buffers += field.buffers;
  if (field.is_view) {
    if (views >= batch.variadic.size() || batch.variadic[views] > batch.buffers.size())
      return bad("is damaged: a batch does not list the buffers of column " + field.name);
    buffers += batch.variadic[views++];
  }
  for (const ArrowField& child : field.children)
    LOCKSTEP_RETURN_IF_ERROR(count(child, batch, views, buffers));
  return Status::ok();
}

Status check_rows(const ArrowField& field, const ArrowBatch& batch, size_t& node) {
  const ArrowNode& own = batch.nodes[node++];
  for (const ArrowField& child : field.children) {
    const uint64_t rows = batch.nodes[node].rows;
    const bool fits_list = field.kind != ArrowKind::kFixedList || own.rows <= rows / field.width;
    if (!fits_list || (field.kind == ArrowKind::kStruct && rows < own.rows))
      return bad("is damaged: column " + field.name + " has fewer values than rows");
    LOCKSTEP_RETURN_IF_ERROR(check_rows(child, batch, node));
  }
  return Status::ok();
}

// A1 and A3; turns the offsets of buffers into places in the file.
Status place(const ArrowSchema& schema, uint64_t body, uint64_t body_bytes, ArrowBatch& batch) {
  uint64_t buffers = 0;
  size_t views = 0;
  for (const ArrowField& field : schema.fields)
    LOCKSTEP_RETURN_IF_ERROR(count(field, batch, views, buffers));
  if (batch.nodes.size() != schema.nodes() || batch.buffers.size() != buffers)
    return bad("is damaged: a batch does not have the columns of the schema");
  size_t node = 0;
  for (const ArrowField& field : schema.fields) {
    if (batch.nodes[node].rows != batch.rows)
      return bad("is damaged: column " + field.name + " has " +
                 std::to_string(batch.nodes[node].rows) + " rows in a batch of " +
                 std::to_string(batch.rows));
    LOCKSTEP_RETURN_IF_ERROR(check_rows(field, batch, node));
  }
  uint64_t end = 0;
  for (ArrowBuffer& buffer : batch.buffers) {
    if (buffer.bytes == 0) {  // wherever it is said to lie
      buffer.offset = body;
      continue;
    }
    if (buffer.offset > body_bytes || buffer.bytes > body_bytes - buffer.offset)
      return bad("is damaged: a buffer reaches beyond its batch");
    if (buffer.offset < end) return bad("is damaged: two buffers of a batch overlap");
    end = buffer.offset + buffer.bytes;
    buffer.offset += body;
  }
  return Status::ok();
}

Status add_batch(Placed placed, ArrowLayout& layout) {
  auto* batch = std::get_if<ArrowBatch>(&placed.message.content);
  if (batch == nullptr)
    return bad("is damaged: a message of another kind stands where a batch should begin");
  Status status = place(layout.schema, placed.body, placed.message.body_bytes, *batch);
  if (!status.is_ok()) return status;
  layout.batches.push_back(std::move(*batch));
  return Status::ok();
}

Result<ArrowLayout> parse_file(std::span<const uint8_t> file) {
  if (file.size() < kMagicBytes + kTailBytes ||
      !is_arrow_file(file.subspan(file.size() - kMagic.size())))
    return truncated();
  const uint64_t footer_end = file.size() - kTailBytes;
  const uint64_t footer_bytes = load_le<uint32_t>(file.data() + footer_end);
  if (footer_bytes == 0 || footer_bytes > footer_end - kMagicBytes)
    return bad("is damaged: its footer reaches beyond the file");
  if (footer_bytes > limits::kArrowMetadataBytes)
    return bad("has a footer of " + std::to_string(footer_bytes) + " bytes, the limit is " +
               std::to_string(limits::kArrowMetadataBytes));
  const uint64_t footer_begin = footer_end - footer_bytes;
  const Copy copy(file.subspan(footer_begin, footer_bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(ArrowFooter footer, read_arrow_footer(copy.bytes()));
  ArrowLayout layout;
  layout.schema = std::move(footer.schema);
  uint64_t end = kMagicBytes;
  for (const ArrowBlock& block : footer.batches) {
    if (block.offset < end || block.offset > footer_begin)
      return bad("is damaged: its batches overlap, or reach beyond the file");
    LOCKSTEP_ASSIGN_OR_RETURN(Placed placed, message_at(file, block.offset, footer_begin));
    if (placed.message.body_bytes != block.body_bytes ||
        placed.body - block.offset != block.metadata_bytes)
      return bad("is damaged: its footer and its batches disagree about sizes");
    end = placed.end;
    LOCKSTEP_RETURN_IF_ERROR(add_batch(std::move(placed), layout));
  }
  return layout;
}

Result<ArrowLayout> parse_stream(std::span<const uint8_t> file) {
  ArrowLayout layout;
  bool has_schema = false;
  for (uint64_t at = 0;;) {
    if (file.size() - at < kPrefixBytes) return truncated();
    if (load_le<uint64_t>(file.data() + at) == kContinues) {  // and a length of 0
      at += kPrefixBytes;
      if (at != file.size()) return bad("is damaged: bytes follow its end");
      if (!has_schema) return bad("is damaged: it has no schema");
      return layout;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(Placed placed, message_at(file, at, file.size()));
    at = placed.end;
    if (auto* schema = std::get_if<ArrowSchema>(&placed.message.content)) {
      if (std::exchange(has_schema, true)) return bad("is damaged: it has a second schema");
      layout.schema = std::move(*schema);
    } else if (!has_schema) {
      return bad("is damaged: it does not begin with a schema");
    } else if (std::holds_alternative<ArrowBatch>(placed.message.content)) {
      LOCKSTEP_RETURN_IF_ERROR(add_batch(std::move(placed), layout));
    }
  }
}

}  // namespace

bool ArrowLayout::is_compressed() const {
  return std::any_of(batches.begin(), batches.end(),
                     [](const ArrowBatch& batch) { return batch.codec != ArrowCodec::kNone; });
}

bool is_arrow_file(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<ArrowLayout> parse_arrow(std::span<const uint8_t> file) {
  if (is_arrow_file(file)) return parse_file(file);
  if (file.size() >= kPrefixBytes && load_le<uint32_t>(file.data()) == kContinues)
    return parse_stream(file);
  return truncated();
}

}  // namespace lockstep::data
