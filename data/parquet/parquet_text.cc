#include "data/parquet/parquet_text.h"

#include <arrow/array.h>
#include <arrow/type.h>
#include <arrow/util/float16.h>

#include <array>
#include <charconv>
#include <string_view>

namespace lockstep::parquet_copy {
namespace {

void append_word(std::string_view word, std::string& out) {
  out += '"';
  for (const char c : word) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

template <typename T>
void append_number(T value, std::string& out) {
  std::array<char, 32> text;  // a double has at most 24 characters
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), end);
}

// As short as the reader, which goes by way of float64, gets it back from.
void append_float(float value, std::string& out) {
  std::array<char, 32> text;
  char* const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double read = 0;
  std::from_chars(text.data(), end, read);
  if (static_cast<float>(read) == value || value != value)
    out.append(text.data(), end);
  else
    append_number(static_cast<double>(value), out);
}

template <typename Array>
const Array& as(const arrow::Array& array) {
  return static_cast<const Array&>(array);
}

arrow::Status append_value(const arrow::Array& array, int64_t i, std::string& out) {
  using Type = arrow::Type;
  if (array.IsNull(i)) {
    append_word("", out);
    return arrow::Status::OK();
  }
  switch (array.type_id()) {
    case Type::BOOL:
      out += as<arrow::BooleanArray>(array).Value(i) ? '1' : '0';
      break;
    case Type::INT8:
      append_number(int{as<arrow::Int8Array>(array).Value(i)}, out);
      break;
    case Type::UINT8:
      append_number(int{as<arrow::UInt8Array>(array).Value(i)}, out);
      break;
    case Type::INT16:
      append_number(as<arrow::Int16Array>(array).Value(i), out);
      break;
    case Type::UINT16:
      append_number(as<arrow::UInt16Array>(array).Value(i), out);
      break;
    case Type::INT32:
      append_number(as<arrow::Int32Array>(array).Value(i), out);
      break;
    case Type::UINT32:
      append_number(as<arrow::UInt32Array>(array).Value(i), out);
      break;
    case Type::INT64:
      append_number(as<arrow::Int64Array>(array).Value(i), out);
      break;
    case Type::UINT64:
      append_number(as<arrow::UInt64Array>(array).Value(i), out);
      break;
    case Type::HALF_FLOAT:
      append_float(
          arrow::util::Float16::FromBits(as<arrow::HalfFloatArray>(array).Value(i)).ToFloat(), out);
      break;
    case Type::FLOAT:
      append_float(as<arrow::FloatArray>(array).Value(i), out);
      break;
    case Type::DOUBLE:
      append_number(as<arrow::DoubleArray>(array).Value(i), out);
      break;
    case Type::DECIMAL128:
      out += as<arrow::Decimal128Array>(array).FormatValue(i);
      break;
    case Type::DECIMAL256:
      out += as<arrow::Decimal256Array>(array).FormatValue(i);
      break;
    case Type::STRING:
      append_word(as<arrow::StringArray>(array).GetView(i), out);
      break;
    case Type::LARGE_STRING:
      append_word(as<arrow::LargeStringArray>(array).GetView(i), out);
      break;
    case Type::DICTIONARY: {
      const auto& words = as<arrow::DictionaryArray>(array);
      return append_value(*words.dictionary(), words.GetValueIndex(i), out);
    }
    default:
      return arrow::Status::Invalid("has values of type ", array.type()->ToString(),
                                    ", which are no numbers and no words");
  }
  return arrow::Status::OK();
}

}  // namespace

void append_header(const arrow::Schema& schema, std::string& out) {
  for (int i = 0; i < schema.num_fields(); ++i) {
    if (i > 0) out += ',';
    append_word(schema.field(i)->name(), out);
  }
  out += '\n';
}

arrow::Status append_rows(const arrow::RecordBatch& batch, std::string& out) {
  for (int64_t row = 0; row < batch.num_rows(); ++row) {
    for (int i = 0; i < batch.num_columns(); ++i) {
      if (i > 0) out += ',';
      ARROW_RETURN_NOT_OK(append_value(*batch.column(i), row, out));
    }
    out += '\n';
  }
  return arrow::Status::OK();
}

}  // namespace lockstep::parquet_copy
