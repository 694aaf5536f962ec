// The numbers of a table of text, in the form that programs write and read: a decimal point, no
// separators of thousands, whatever the locale.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::data {

enum class CsvNumber {
  kFinite,
  kNotFinite,  // nan or inf, in any case and of any sign
  kTooLarge,   // beyond what a float32 can be, or too small for a float64
  kNone,       // no number
};

// The float64 nearest to what is written, rounded to float32. `out` is set where it is finite.
CsvNumber parse_csv_number(std::string_view text, float* out);

// Digits and nothing else, of a number that fits.
std::optional<uint64_t> parse_csv_count(std::string_view text);

}  // namespace lockstep::data
