#include "data/arrow/writer.h"

#include "arrow_generated.h"
#include "comm/base/check.h"

namespace lockstep::data {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr uint32_t kContinuation = 0xFFFFFFFF;
constexpr char kFileMagic[] = "ARROW1";

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_all(std::string& out, const FlatBufferBuilder& builder) {
  out.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

// Padded, so that what follows begins at a multiple of kArrowAlignBytes.
std::string as_message(const FlatBufferBuilder& builder, uint64_t at) {
  const uint64_t behind = at + 8;
  const uint64_t bytes = arrow_aligned(behind + builder.GetSize()) - behind;
  std::string out;
  append(out, kContinuation);
  append(out, static_cast<uint32_t>(bytes));
  append_all(out, builder);
  out.resize(8 + bytes, '\0');
  return out;
}

auto key_values(const std::map<std::string, std::string>& metadata, FlatBufferBuilder& builder) {
  std::vector<Offset<fb::KeyValue>> pairs;
  for (const auto& [key, value] : metadata)
    pairs.push_back(fb::CreateKeyValueDirect(builder, key.c_str(), value.c_str()));
  return metadata.empty() ? 0 : builder.CreateVector(pairs);
}

struct Typed {
  fb::Type type = fb::Type_NONE;
  Offset<void> table;
};

Typed type_of(const ArrowField& field, FlatBufferBuilder& builder) {
  const auto width = static_cast<int32_t>(field.width);
  switch (field.kind) {
    case ArrowKind::kInt:
      return {fb::Type_Int, fb::CreateInt(builder, 8 * width, field.is_signed).Union()};
    case ArrowKind::kFloat:
      return {fb::Type_FloatingPoint,
              fb::CreateFloatingPoint(builder, width == 2   ? fb::Precision_Half
                                               : width == 4 ? fb::Precision_Single
                                                            : fb::Precision_Double)
                  .Union()};
    case ArrowKind::kBinary:
      return {fb::Type_Binary, fb::CreateBinary(builder).Union()};
    case ArrowKind::kLargeBinary:
      return {fb::Type_LargeBinary, fb::CreateLargeBinary(builder).Union()};
    case ArrowKind::kFixedBinary:
      return {fb::Type_FixedSizeBinary, fb::CreateFixedSizeBinary(builder, width).Union()};
    case ArrowKind::kFixedList:
      return {fb::Type_FixedSizeList, fb::CreateFixedSizeList(builder, width).Union()};
    case ArrowKind::kList:
      return {fb::Type_List, fb::CreateList(builder).Union()};
    case ArrowKind::kLargeList:
      return {fb::Type_LargeList, fb::CreateLargeList(builder).Union()};
    default:
      LOCKSTEP_CHECK(false, "a column of a type that is never written");
  }
}

Offset<fb::Field> new_field(const ArrowField& field, FlatBufferBuilder& builder) {
  std::vector<Offset<fb::Field>> children;
  for (const ArrowField& child : field.children) children.push_back(new_field(child, builder));
  const auto name = builder.CreateString(field.name);
  const Typed typed = type_of(field, builder);
  const auto below = builder.CreateVector(children);
  const auto metadata = key_values(field.metadata, builder);
  return fb::CreateField(builder, name, /*nullable=*/false, typed.type, typed.table, 0, below,
                         metadata);
}

Offset<fb::Schema> new_schema(const ArrowSchema& schema, FlatBufferBuilder& builder) {
  std::vector<Offset<fb::Field>> fields;
  for (const ArrowField& field : schema.fields) fields.push_back(new_field(field, builder));
  const auto all = builder.CreateVector(fields);
  const auto metadata = key_values(schema.metadata, builder);
  return fb::CreateSchema(builder, fb::Endianness_Little, all, metadata);
}

}  // namespace

std::string arrow_file_head() {
  return std::string(kFileMagic) + std::string(2, '\0');
}

std::string schema_message(const ArrowSchema& schema, uint64_t at) {
  FlatBufferBuilder builder;
  const auto header = new_schema(schema, builder);
  builder.Finish(fb::CreateMessage(builder, fb::MetadataVersion_V5, fb::MessageHeader_Schema,
                                   header.Union(), 0));
  return as_message(builder, at);
}

uint64_t lay_out(ArrowBatch& batch) {
  uint64_t end = 0;
  for (ArrowBuffer& buffer : batch.buffers) {
    buffer.offset = end;
    end += arrow_aligned(buffer.bytes);
  }
  return end;
}

std::string batch_message(const ArrowBatch& batch, uint64_t body_bytes, uint64_t at) {
  FlatBufferBuilder builder;
  std::vector<fb::FieldNode> nodes;
  for (const ArrowNode& node : batch.nodes)
    nodes.emplace_back(static_cast<int64_t>(node.rows), static_cast<int64_t>(node.nulls));
  std::vector<fb::Buffer> buffers;
  for (const ArrowBuffer& buffer : batch.buffers)
    buffers.emplace_back(static_cast<int64_t>(buffer.offset), static_cast<int64_t>(buffer.bytes));
  const auto all_nodes = builder.CreateVectorOfStructs(nodes);
  const auto all_buffers = builder.CreateVectorOfStructs(buffers);
  Offset<fb::BodyCompression> packed = 0;
  if (batch.codec != ArrowCodec::kNone)
    packed = fb::CreateBodyCompression(builder, batch.codec == ArrowCodec::kZstd
                                                    ? fb::CompressionType_ZSTD
                                                    : fb::CompressionType_LZ4_FRAME);
  const auto header = fb::CreateRecordBatch(builder, static_cast<int64_t>(batch.rows), all_nodes,
                                            all_buffers, packed);
  builder.Finish(fb::CreateMessage(builder, fb::MetadataVersion_V5, fb::MessageHeader_RecordBatch,
                                   header.Union(), static_cast<int64_t>(body_bytes)));
  return as_message(builder, at);
}

std::string arrow_stream_end() {
  std::string out;
  append(out, kContinuation);
  append(out, uint32_t{0});
  return out;
}

std::string arrow_file_end(const ArrowSchema& schema, std::span<const ArrowBlock> batches) {
  FlatBufferBuilder builder;
  std::vector<fb::Block> blocks;
  for (const ArrowBlock& block : batches)
    blocks.emplace_back(static_cast<int64_t>(block.offset),
                        static_cast<int32_t>(block.metadata_bytes),
                        static_cast<int64_t>(block.body_bytes));
  const auto all = new_schema(schema, builder);
  const auto none = builder.CreateVectorOfStructs(std::vector<fb::Block>());
  const auto placed = builder.CreateVectorOfStructs(blocks);
  builder.Finish(fb::CreateFooter(builder, fb::MetadataVersion_V5, all, none, placed));
  std::string out = arrow_stream_end();
  append_all(out, builder);
  append(out, static_cast<uint32_t>(builder.GetSize()));
  return out + kFileMagic;
}

}  // namespace lockstep::data
