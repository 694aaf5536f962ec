#include "data/csv/csv_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace lockstep::data {
namespace {

// Half way from the largest float32 to what would be the next one.
constexpr double kRoundsToInfinity = 0x1.ffffffp127;

// Whether a number beyond float64 is near 0, not near infinity.
bool is_tiny(std::string_view text) {
  long double wide = 0;
  const auto [behind, error] = std::from_chars(text.data(), text.data() + text.size(), wide);
  if (error == std::errc()) return std::fabs(wide) < 1;
  const size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) return text.substr(exponent + 1).starts_with('-');
  return text.find_first_not_of("-0") == text.find('.');
}

}  // namespace

CsvNumber parse_csv_number(std::string_view text, float* out) {
  // from_chars() takes no plus. "+-1" is no number.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || behind != end) return CsvNumber::kNone;
  if (error != std::errc()) {
    if (!is_tiny(text)) return CsvNumber::kTooLarge;
    *out = text.front() == '-' ? -0.0F : 0.0F;  // as Python and NumPy read it
    return CsvNumber::kFinite;
  }
  if (!std::isfinite(value)) return CsvNumber::kNotFinite;
  if (std::fabs(value) >= kRoundsToInfinity) return CsvNumber::kTooLarge;
  constexpr double kMost = std::numeric_limits<float>::max();
  *out = static_cast<float>(std::clamp(value, -kMost, kMost));
  return CsvNumber::kFinite;
}

std::optional<uint64_t> parse_csv_count(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || behind != end) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_csv_class(std::string_view text) {
  const size_t point = text.find('.');
  const bool is_whole = point == std::string_view::npos ||
                        text.find_first_not_of('0', point + 1) == std::string_view::npos;
  return is_whole ? parse_csv_count(text.substr(0, point)) : std::nullopt;
}

}  // namespace lockstep::data
