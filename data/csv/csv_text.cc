#include "data/csv/csv_text.h"

#include <cstdint>

namespace lockstep::data {
namespace {

constexpr size_t kShownBytes = 40;

struct Lead {
  unsigned char first;  // of the leading byte
  unsigned char last;
  unsigned char low;  // bounds of the byte behind it
  unsigned char high;
  size_t more;  // bytes that follow
};

constexpr Lead kLeads[] = {
    {0x00, 0x7f, 0x00, 0xff, 0}, {0xc2, 0xdf, 0x80, 0xbf, 1}, {0xe0, 0xe0, 0xa0, 0xbf, 2},
    {0xe1, 0xec, 0x80, 0xbf, 2}, {0xed, 0xed, 0x80, 0x9f, 2}, {0xee, 0xef, 0x80, 0xbf, 2},
    {0xf0, 0xf0, 0x90, 0xbf, 3}, {0xf1, 0xf3, 0x80, 0xbf, 3}, {0xf4, 0xf4, 0x80, 0x8f, 3},
};

// Bytes of the character at the front of `text`, which is not empty; 0: it is none.
size_t character_bytes(std::string_view text) {
  const auto at = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const Lead& lead : kLeads) {
    if (at(0) < lead.first || at(0) > lead.last) continue;
    if (text.size() <= lead.more) return 0;
    if (lead.more > 0 && (at(1) < lead.low || at(1) > lead.high)) return 0;
    for (size_t i = 2; i <= lead.more; ++i)
      if (at(i) < 0x80 || at(i) > 0xbf) return 0;
    return lead.more + 1;
  }
  return 0;
}

}  // namespace

std::string shown(std::string_view text) {
  std::string out = "\"";
  size_t i = 0;
  while (i < text.size() && i < kShownBytes) {
    const size_t bytes = character_bytes(text.substr(i));
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

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace lockstep::data
