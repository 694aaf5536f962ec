#include "data/csv/csv_text.h"

#include <cstdint>

#include "comm/base/text/utf8.h"

namespace lockstep::data {
namespace {

constexpr size_t kShownBytes = 40;

}  // namespace

std::string shown(std::string_view text) {
  std::string out = "\"";
  size_t i = 0;
  while (i < text.size() && i < kShownBytes) {
    const size_t bytes = utf8_character_bytes(text.substr(i));
    const auto c = static_cast<unsigned char>(text[i]);
    if (bytes == 0 || c < ' ' || c == 0x7f)
      out += '?';
    else
      out += text.substr(i, bytes);
    i += bytes == 0 ? 1 : bytes;
  }
  return out + (i < text.size() ? "...\"" : "\"");
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string_view csv_text(const CsvField& field) {
  return field.is_quoted ? field.text : trimmed(field.text);
}

}  // namespace lockstep::data
