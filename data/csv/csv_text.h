// Helpers for the text of a table, for messages and rules. Every byte comes from outside.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "data/csv/csv_records.h"

namespace lockstep::data {

// In quotes, on one line, long text cut off. Bytes that cannot be shown become '?'.
std::string shown(std::string_view text);

// Without blanks and tabs at both ends.
std::string_view trimmed(std::string_view text);

// Returns the text of a field, without blanks around an unquoted field.
std::string_view csv_text(const CsvField& field);

}  // namespace lockstep::data
