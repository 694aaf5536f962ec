#include "data/parquet/parquet_copy.h"

#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/type.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "data/base/progress.h"
#include "data/parquet/parquet_text.h"

namespace lockstep::parquet_copy {
namespace {

constexpr int64_t kTextValues = 65'536;  // of a table, written at once

using Reader = std::unique_ptr<parquet::arrow::FileReader>;

// Parquet counts what is within structs and lists.
void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const auto& child : field.children) add_leaves(child, leaves);
}

arrow::Status written(const arrow::Status& status) {
  if (status.ok()) return status;
  const auto& detail = status.detail();
  return arrow::Status::ExecutionError(status.message(), detail ? " " + detail->ToString() : "");
}

arrow::Result<std::shared_ptr<arrow::io::FileOutputStream>> create(const std::string& path) {
  auto file = arrow::io::FileOutputStream::Open(path);
  if (!file.ok()) return written(file.status());
  return file;
}

// Rows that are about kBatchBytes.
int64_t batch_rows(const parquet::FileMetaData& file) {
  int64_t bytes = 0;
  for (int group = 0; group < file.num_row_groups(); ++group)
    bytes += std::max<int64_t>(file.RowGroup(group)->total_byte_size(), 0);
  const int64_t rows = std::max<int64_t>(file.num_rows(), 1);
  return std::clamp<int64_t>(kBatchBytes / std::max<int64_t>(bytes / rows, 1), 1, 1 << 20);
}

arrow::Result<Reader> open(const std::string& from) {
  // Read, not mapped: a file that shrinks is an error, not a signal.
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(from));
  parquet::arrow::FileReaderBuilder builder;
  parquet::ReaderProperties reading;
  reading.enable_buffered_stream();              // pages as they are needed, not whole row groups
  reading.set_page_checksum_verification(true);  // of files that have such
  ARROW_RETURN_NOT_OK(builder.Open(std::move(file), reading));
  parquet::ArrowReaderProperties decoding;
  decoding.set_use_threads(false);  // several files are decoded at a time
  decoding.set_pre_buffer(false);
  decoding.set_batch_size(batch_rows(*builder.raw_reader()->metadata()));
  builder.properties(decoding);
  Reader reader;
  ARROW_RETURN_NOT_OK(builder.Build(&reader));
  return reader;
}

}  // namespace

arrow::Status write_schema(const std::string& from, const std::string& to) {
  ARROW_ASSIGN_OR_RAISE(const Reader reader, open(from));
  std::shared_ptr<arrow::Schema> schema;
  ARROW_RETURN_NOT_OK(reader->GetSchema(&schema));
  ARROW_ASSIGN_OR_RAISE(const auto out, create(to));
  ARROW_ASSIGN_OR_RAISE(const auto writer, arrow::ipc::MakeFileWriter(out, schema));
  ARROW_RETURN_NOT_OK(written(writer->Close()));
  return written(out->Close());
}

namespace {

struct Columns {
  Reader file;
  std::unique_ptr<arrow::RecordBatchReader> batches;
};

arrow::Result<Columns> open_columns(const std::string& from, const std::vector<int>& columns) {
  Columns opened;
  ARROW_ASSIGN_OR_RAISE(opened.file, open(from));
  const auto& manifest = opened.file->manifest();
  std::vector<int> leaves;
  for (const int column : columns) {
    if (column < 0 || static_cast<size_t>(column) >= manifest.schema_fields.size())
      return arrow::Status::Invalid("has no column ", column);
    add_leaves(manifest.schema_fields[static_cast<size_t>(column)], leaves);
  }
  std::vector<int> groups(static_cast<size_t>(opened.file->num_row_groups()));
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
  ARROW_ASSIGN_OR_RAISE(opened.batches, opened.file->GetRecordBatchReader(groups, leaves));
  return opened;
}

// Passes all batches to `give`.
template <typename GiveFn>
arrow::Status each_batch(const Columns& columns, const CopyProgressFn& progress,
                         const GiveFn& give) {
  const int64_t rows = columns.file->parquet_reader()->metadata()->num_rows();
  int64_t done = 0;
  std::shared_ptr<arrow::RecordBatch> batch;
  for (;;) {
    ARROW_RETURN_NOT_OK(columns.batches->ReadNext(&batch));
    if (batch == nullptr) break;
    ARROW_RETURN_NOT_OK(batch->Validate());
    ARROW_RETURN_NOT_OK(give(*batch));
    progress(done += batch->num_rows(), rows);
  }
  if (done == rows) return arrow::Status::OK();
  return arrow::Status::Invalid("promises ", rows, " rows and has ", done);
}

}  // namespace

arrow::Status copy_columns(const std::string& from, const std::string& to,
                           const std::vector<int>& columns, const CopyProgressFn& progress) {
  ARROW_ASSIGN_OR_RAISE(const Columns opened, open_columns(from, columns));
  ARROW_ASSIGN_OR_RAISE(const auto out, create(to));
  ARROW_ASSIGN_OR_RAISE(const auto writer,
                        arrow::ipc::MakeFileWriter(out, opened.batches->schema()));
  ARROW_RETURN_NOT_OK(each_batch(opened, progress, [&](const arrow::RecordBatch& batch) {
    return written(writer->WriteRecordBatch(batch));
  }));
  ARROW_RETURN_NOT_OK(written(writer->Close()));
  return written(out->Close());
}

arrow::Status write_text(const std::string& from, const std::string& to,
                         const std::vector<int>& columns, const CopyProgressFn& progress) {
  ARROW_ASSIGN_OR_RAISE(const Columns opened, open_columns(from, columns));
  ARROW_ASSIGN_OR_RAISE(const auto out, create(to));
  std::string text;
  append_header(*opened.batches->schema(), text);
  const auto put = [&] {
    arrow::Status status = written(out->Write(text.data(), static_cast<int64_t>(text.size())));
    text.clear();
    return status;
  };
  ARROW_RETURN_NOT_OK(each_batch(opened, progress, [&](const arrow::RecordBatch& batch) {
    const int64_t rows = std::max<int64_t>(kTextValues / std::max(batch.num_columns(), 1), 1);
    for (int64_t row = 0; row < batch.num_rows(); row += rows) {
      ARROW_RETURN_NOT_OK(append_rows(*batch.Slice(row, rows), text));
      ARROW_RETURN_NOT_OK(put());
    }
    return arrow::Status::OK();
  }));
  ARROW_RETURN_NOT_OK(put());
  return written(out->Close());
}

}  // namespace lockstep::parquet_copy
