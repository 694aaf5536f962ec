#include "comm/base/text/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "comm/base/text/utf8.h"

namespace lockstep {
namespace {

bool steers(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(character[i]); };
  if (character.size() == 1)
    return (byte(0) < 0x20 && byte(0) != '\n' && byte(0) != '\t') || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;  // U+0080 to U+009F
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  const bool is_old_turn = byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae;  // U+202A to 202E
  const bool is_mark = byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f);    // U+200E, 200F
  const bool is_turn = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;      // U+2066 to 2069
  const bool is_line = byte(1) == 0x80 && (byte(2) == 0xa8 || byte(2) == 0xa9);    // U+2028, 2029
  return is_old_turn || is_mark || is_turn || is_line;
}

// The words before the colon in lines of our programs.
constexpr std::string_view kSpeakers[] = {"lockstep", "coordinator", "agent", "worker"};

bool looks_like_ours(std::string_view line) {
  return std::ranges::any_of(kSpeakers,
                             [&](std::string_view speaker) { return line.starts_with(speaker); });
}

}  // namespace

std::string printable_line(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out;
}

std::string printable_message(std::string_view text) {
  const std::string shown = printable(text);
  std::string out;
  for (size_t i = 0; i < shown.size(); ++i) {
    out += shown[i];
    if (shown[i] == '\n' && looks_like_ours(std::string_view(shown).substr(i + 1))) out += "  ";
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = utf8_character_bytes(text);
    const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    text.remove_prefix(character.size());
    if (bytes != 0 && !steers(character)) {
      out += character;
      continue;
    }
    for (const char c : character) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(c));
      out += escaped;
    }
  }
  return out;
}

}  // namespace lockstep
