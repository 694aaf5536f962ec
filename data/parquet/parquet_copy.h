// Columns of a Parquet file as an Arrow IPC file, by Arrow's own libraries.
//
// Decoded as it is written, a batch at a time: of memory it takes a row group's pages and
// kBatchBytes.
//
// Errors: ExecutionError when the result cannot be written, any other when the file is damaged.
//
// Thread-safety: free functions.
#pragma once

#include <arrow/status.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::parquet_copy {

inline constexpr int64_t kBatchBytes = int64_t{64} << 20;  // about, of what is decoded

// `done` and `rows` of the file.
using ProgressFn = std::function<void(int64_t done, int64_t rows)>;

// Of all columns their types, and no rows.
arrow::Status write_schema(const std::string& from, const std::string& to);

// The columns of these numbers, rising, with all their rows; metadata stay.
arrow::Status copy_columns(const std::string& from, const std::string& to,
                           const std::vector<int>& columns, const ProgressFn& progress);

}  // namespace lockstep::parquet_copy
