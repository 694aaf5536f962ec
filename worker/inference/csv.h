// Cells of CSV files with names that come from files and jobs.
//
// A cell holds no control character: they are escapes (\x1b, \n), since CSV goes to terminals. No
// cell is a formula to a spreadsheet: text that begins with =, +, - or @ and is no number gets a '
// in front, which spreadsheets take for the mark of text.
//
// Thread-safety: pure functions.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "comm/base/text/printable.h"

namespace lockstep {

inline bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

inline std::string csv_text(std::string_view name) {
  const bool is_formula =
      !name.empty() && std::string_view("=+-@").find(name[0]) != std::string_view::npos;
  return (is_formula && !is_number(name) ? "'" : "") + printable_line(name);
}

// In quotes, whatever it is.
inline std::string csv_quoted(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : csv_text(name)) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// In quotes where it needs them.
inline std::string csv_cell(std::string_view name) {
  const std::string text = csv_text(name);
  return text.find_first_of(",\"") == std::string::npos ? text : csv_quoted(name);
}

}  // namespace lockstep
