#include "data/arrow/flat_messages.h"

#include <cstring>
#include <string>
#include <utility>

#include "arrow_generated.h"
#include "comm/base/limits.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

using Metadata = std::map<std::string, std::string>;
using KeyValues = flatbuffers::Vector<flatbuffers::Offset<fb::KeyValue>>;

Status damaged() {
  return bad("is damaged: its description of the columns is inconsistent");
}

template <typename Table>
const Table* checked(std::span<const uint8_t> bytes) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), limits::kArrowTablesDeep);
  return verifier.VerifyBuffer<Table>(nullptr) ? flatbuffers::GetRoot<Table>(bytes.data())
                                               : nullptr;
}

// The elements of a vector. The verifier has checked that they lie within the bytes, but not that
// they are aligned.
template <typename T, typename Vector>
std::vector<T> elements_of(const Vector* from) {
  std::vector<T> elements(from == nullptr ? 0 : from->size());
  if (!elements.empty())
    std::memcpy(static_cast<void*>(elements.data()), from->Data(), elements.size() * sizeof(T));
  return elements;
}

Metadata metadata_of(const KeyValues* pairs) {
  Metadata metadata;
  if (pairs == nullptr) return metadata;
  for (const fb::KeyValue* pair : *pairs)
    if (pair->key() != nullptr && pair->value() != nullptr)
      metadata[pair->key()->str()] = pair->value()->str();
  return metadata;
}

struct Physical {
  ArrowKind kind;
  uint32_t buffers;
  const char* text;
};

// By the number of the type.
constexpr Physical kPhysical[] = {
    {ArrowKind::kOther, 0, "none"},
    {ArrowKind::kOther, 0, "null"},
    {ArrowKind::kInt, 2, "int"},
    {ArrowKind::kFloat, 2, "float"},
    {ArrowKind::kBinary, 3, "binary"},
    {ArrowKind::kOther, 3, "string"},
    {ArrowKind::kOther, 2, "bool"},
    {ArrowKind::kOther, 2, "decimal"},
    {ArrowKind::kOther, 2, "date"},
    {ArrowKind::kOther, 2, "time"},
    {ArrowKind::kOther, 2, "timestamp"},
    {ArrowKind::kOther, 2, "interval"},
    {ArrowKind::kList, 2, "list"},
    {ArrowKind::kStruct, 1, "struct"},
    {ArrowKind::kOther, 1, "union"},
    {ArrowKind::kFixedBinary, 2, "fixed_size_binary"},
    {ArrowKind::kFixedList, 1, "fixed_size_list"},
    {ArrowKind::kOther, 2, "map"},
    {ArrowKind::kOther, 2, "duration"},
    {ArrowKind::kLargeBinary, 3, "large_binary"},
    {ArrowKind::kOther, 3, "large_string"},
    {ArrowKind::kLargeList, 2, "large_list"},
    {ArrowKind::kOther, 0, "run_end_encoded"},
    {ArrowKind::kOther, 2, "binary_view"},
    {ArrowKind::kOther, 2, "string_view"},
    {ArrowKind::kOther, 3, "list_view"},
    {ArrowKind::kOther, 3, "large_list_view"},
};

Status set_type(const fb::Field& from, bool is_v4, ArrowField& field) {
  const auto number = static_cast<size_t>(from.type_type());
  if (number == 0 || number >= std::size(kPhysical) || from.type() == nullptr)
    return bad("has a column " + field.name +
               " of a type that Lockstep does not know (Arrow's number " + std::to_string(number) +
               "); leave the column out");
  const Physical& physical = kPhysical[number];
  field.kind = physical.kind;
  field.buffers = physical.buffers;
  field.type_text = physical.text;
  int32_t width = 1;
  if (const auto* type = from.type_as_Int()) {
    width = type->bit_width() % 8 == 0 ? type->bit_width() / 8 : 0;
    field.is_signed = type->is_signed();
    field.type_text = (field.is_signed ? "int" : "uint") + std::to_string(type->bit_width());
    if (width != 1 && width != 2 && width != 4 && width != 8) width = 0;
  } else if (const auto* real = from.type_as_FloatingPoint()) {
    width = real->precision() == fb::Precision_Half ? 2 : 4;
    if (real->precision() == fb::Precision_Double) width = 8;
    field.type_text += std::to_string(8 * width);
  } else if (const auto* binary = from.type_as_FixedSizeBinary()) {
    width = binary->byte_width();
    field.type_text += "[" + std::to_string(width) + "]";
  } else if (const auto* list = from.type_as_FixedSizeList()) {
    width = list->list_size();
    field.type_text += "[" + std::to_string(width) + "]";
  } else if (const auto* joined = from.type_as_Union()) {
    field.buffers = (joined->mode() == fb::UnionMode_Dense ? 2U : 1U) + (is_v4 ? 1U : 0U);
  }
  field.is_view = from.type_type() == fb::Type_BinaryView || from.type_type() == fb::Type_Utf8View;
  // A column of width 0 would have any number of rows in no byte.
  if (width <= 0)
    return bad("is damaged: column " + field.name + " has the impossible type " + field.type_text);
  field.width = static_cast<uint32_t>(width);
  return Status::ok();
}

Status check_children(const ArrowField& field) {
  const bool has_none = field.kind != ArrowKind::kStruct && field.kind != ArrowKind::kOther;
  if (is_list(field) ? field.children.size() == 1 : !has_none || field.children.empty())
    return Status::ok();
  return damaged();
}

// `fields` counts the fields so far, so that few bytes cannot become many fields.
Result<ArrowField> field_of(const fb::Field& from, bool is_v4, size_t depth, size_t& fields) {
  if (depth > limits::kArrowDepth || ++fields > limits::kArrowFields)
    return bad("has more than " +
               (depth > limits::kArrowDepth
                    ? std::to_string(limits::kArrowDepth) + " columns within columns"
                    : std::to_string(limits::kArrowFields) + " columns") +
               ", the limit of Lockstep");
  ArrowField field;
  if (from.name() != nullptr) field.name = from.name()->str();
  field.metadata = metadata_of(from.custom_metadata());
  LOCKSTEP_RETURN_IF_ERROR(set_type(from, is_v4, field));
  if (from.children() != nullptr) {
    for (const fb::Field* below : *from.children()) {
      LOCKSTEP_ASSIGN_OR_RETURN(ArrowField child, field_of(*below, is_v4, depth + 1, fields));
      field.children.push_back(std::move(child));
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(check_children(field));
  if (!field.children.empty() && field.kind != ArrowKind::kOther &&
      field.kind != ArrowKind::kStruct)
    field.type_text += " of " + field.children[0].type_text;
  if (from.dictionary() == nullptr) return field;
  // The column itself has the buffers of a number; its values come in a message of their own.
  field.is_dictionary = true;
  field.is_view = false;
  field.buffers = 2;
  field.children.clear();
  field.type_text = "dictionary of " + field.type_text;
  return field;
}

Result<ArrowSchema> schema_of(const fb::Schema* from, fb::MetadataVersion version) {
  if (from == nullptr || from->fields() == nullptr) return damaged();
  if (version != fb::MetadataVersion_V4 && version != fb::MetadataVersion_V5)
    return bad("has version " + std::to_string(static_cast<int>(version) + 1) +
               " of Arrow's format; Lockstep reads versions 4 and 5");
  if (from->endianness() != fb::Endianness_Little)
    return bad(
        "has big-endian numbers, and Lockstep reads only little-endian ones; write it again on a "
        "little-endian machine");
  ArrowSchema schema;
  schema.metadata = metadata_of(from->custom_metadata());
  size_t fields = 0;
  for (const fb::Field* field : *from->fields()) {
    LOCKSTEP_ASSIGN_OR_RETURN(ArrowField read,
                              field_of(*field, version == fb::MetadataVersion_V4, 1, fields));
    schema.fields.push_back(std::move(read));
  }
  return schema;
}

Result<ArrowBatch> batch_of(const fb::RecordBatch& from) {
  ArrowBatch batch;
  if (from.length() < 0) return damaged();
  batch.rows = static_cast<uint64_t>(from.length());
  if (const fb::BodyCompression* packed = from.compression()) {
    const bool is_known = packed->method() == fb::BodyCompressionMethod_BUFFER &&
                          (packed->codec() == fb::CompressionType_LZ4_FRAME ||
                           packed->codec() == fb::CompressionType_ZSTD);
    if (!is_known)
      return bad(
          "has a compression that Lockstep does not know; write it with LZ4, with zstd, or without "
          "compression");
    batch.codec =
        packed->codec() == fb::CompressionType_ZSTD ? ArrowCodec::kZstd : ArrowCodec::kLz4;
  }
  for (const auto& node : elements_of<fb::FieldNode>(from.nodes())) {
    if (node.length() < 0 || node.null_count() < 0 || node.null_count() > node.length())
      return damaged();
    batch.nodes.push_back(
        {static_cast<uint64_t>(node.length()), static_cast<uint64_t>(node.null_count())});
  }
  for (const auto& buffer : elements_of<fb::Buffer>(from.buffers())) {
    if (buffer.offset() < 0 || buffer.length() < 0) return damaged();
    batch.buffers.push_back(
        {static_cast<uint64_t>(buffer.offset()), static_cast<uint64_t>(buffer.length())});
  }
  for (const int64_t count : elements_of<int64_t>(from.variadic_buffer_counts())) {
    if (count < 0) return damaged();
    batch.variadic.push_back(static_cast<uint64_t>(count));
  }
  return batch;
}

}  // namespace

Result<ArrowFooter> read_arrow_footer(std::span<const uint8_t> bytes) {
  const auto* from = checked<fb::Footer>(bytes);
  if (from == nullptr) return bad("is damaged: its footer is not one of Arrow's");
  ArrowFooter footer;
  LOCKSTEP_ASSIGN_OR_RETURN(footer.schema, schema_of(from->schema(), from->version()));
  for (const auto& block : elements_of<fb::Block>(from->record_batches())) {
    if (block.offset() < 0 || block.metadata_length() < 0 || block.body_length() < 0)
      return damaged();
    footer.batches.push_back({static_cast<uint64_t>(block.offset()),
                              static_cast<uint64_t>(block.metadata_length()),
                              static_cast<uint64_t>(block.body_length())});
  }
  return footer;
}

Result<ArrowMessage> read_arrow_message(std::span<const uint8_t> bytes) {
  const auto* from = checked<fb::Message>(bytes);
  if (from == nullptr || from->body_length() < 0)
    return bad("is damaged: it has a message that is not one of Arrow's");
  ArrowMessage message;
  message.body_bytes = static_cast<uint64_t>(from->body_length());
  if (const auto* schema = from->header_as_Schema()) {
    LOCKSTEP_ASSIGN_OR_RETURN(message.content, schema_of(schema, from->version()));
  } else if (const auto* batch = from->header_as_RecordBatch()) {
    LOCKSTEP_ASSIGN_OR_RETURN(message.content, batch_of(*batch));
  }
  return message;
}

}  // namespace lockstep::data
