#include "comm/base/text/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace lockstep {
namespace {

// Skips eight ASCII bytes at a time.
size_t ascii_bytes(std::string_view text) {
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, sizeof eight);
    if ((eight & 0x8080808080808080) != 0) break;
  }
  while (at < text.size() && static_cast<uint8_t>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace

size_t utf8_character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (text.empty()) return 0;
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (bytes > text.size()) return 0;
  // The second byte shows an overlong form, a surrogate, or a value that is too large.
  const uint8_t lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint8_t highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < lowest || byte(1) > highest) return 0;
  for (size_t i = 2; i < bytes; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return bytes;
}

std::optional<size_t> find_no_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    at += ascii_bytes(text.substr(at));
    if (at == text.size()) break;
    const size_t bytes = utf8_character_bytes(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::nullopt;
}

bool is_printable_utf8(std::string_view text) {
  return is_utf8(text) && std::none_of(text.begin(), text.end(),
                                       [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace lockstep
