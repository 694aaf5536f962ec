// The table of data formats: one row for each (data/formats/format_rows.h).
//
// Thread-safety: constants and pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "data/dataset/format_row.h"
#include "data/formats/images/encoded_source.h"  // what find() of a row returns

namespace lockstep::data {

// In the order of detection.
std::span<const DataFormat* const> data_formats();

// Null for an unknown name, and for "auto".
const DataFormat* find_data_format(std::string_view name);

// kUsage if a job names a column of a format that has none. REQUIRES: `format` is known.
Status check_columns(const ColumnNames& columns, const std::string& path,
                     const std::string& format);

// The row whose functions read the files of this format at a path. REQUIRES: `format` is a known
// format.
const DataFormat& format_at(const std::string& path, std::string_view format);

}  // namespace lockstep::data
