// Writes the values of Arrow arrays as a table of text (data/csv/csv_records.h): how a Parquet file
// with a column for each feature becomes rows.
//
// Whole numbers and floats are written such that the table's reader gets the same float32 as a
// direct conversion gives. Words stand in quotes. false and true become 0 and 1; a value that is
// missing becomes an empty field in quotes, which the table's reader refuses by line and column.
//
// ERRORS: Invalid for a type that is no number, word or truth value.
// Thread-safety: free functions.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/status.h>
#include <arrow/type.h>

#include <string>

namespace lockstep::parquet_copy {

// Appends the names of the columns as one line.
void append_header(const arrow::Schema& schema, std::string& out);

// Appends a line for each row.
arrow::Status append_rows(const arrow::RecordBatch& batch, std::string& out);

}  // namespace lockstep::parquet_copy
