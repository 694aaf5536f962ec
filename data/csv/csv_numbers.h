// The numbers of a table of text, in the form that programs write and read: a decimal point, no
// separators of thousands, in any locale.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::data {

enum class CsvNumber {
  kFinite,
  kNotFinite,  // nan or inf, in any case and with any sign
  kTooLarge,   // too large for a float32
  kNone,       // not a number
};

// The nearest float64, rounded to float32; a number too small for either is 0. Sets `out` if the
// number is finite.
CsvNumber parse_csv_number(std::string_view text, float* out);

// Reads a number that consists of digits only and fits; else empty.
std::optional<uint64_t> parse_csv_count(std::string_view text);

// The same for a class: also "3.0", as pandas writes whole numbers of a column with gaps.
std::optional<uint64_t> parse_csv_class(std::string_view text);

}  // namespace lockstep::data
