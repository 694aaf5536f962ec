// Cells of CSV files.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// In quotes, whatever it is.
inline std::string csv_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// In quotes where it needs them.
inline std::string csv_cell(std::string_view text) {
  return text.find_first_of(",\"\r\n") == std::string_view::npos ? std::string(text)
                                                                 : csv_quoted(text);
}

}  // namespace lockstep
