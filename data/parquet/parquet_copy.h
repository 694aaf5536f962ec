// Copies columns of a Parquet file into an Arrow IPC file or into a table of text, with Arrow's own
// libraries.
//
// It decodes one batch at a time while writing. Memory: the pages of a row group, and kBatchBytes.
//
// Errors: ExecutionError if the result cannot be written; any other error means a damaged file.
//
// Thread-safety: free functions.
#pragma once

#include <arrow/status.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/base/byte_units.h"

namespace lockstep::parquet_copy {

inline constexpr int64_t kBatchBytes = 64 * kMib;  // approximate, of decoded bytes

// `done` and `rows`: rows of the file.
using CopyProgressFn = std::function<void(int64_t done, int64_t rows)>;

// Writes the types of all columns, and no rows.
arrow::Status write_schema(const std::string& from, const std::string& to);

// Copies the columns with these numbers, rising, with all their rows; keeps metadata.
arrow::Status copy_columns(const std::string& from, const std::string& to,
                           const std::vector<int>& columns, const CopyProgressFn& progress);

// Writes these columns as a table of text with a header (parquet_text.h).
arrow::Status write_text(const std::string& from, const std::string& to,
                         const std::vector<int>& columns, const CopyProgressFn& progress);

}  // namespace lockstep::parquet_copy
