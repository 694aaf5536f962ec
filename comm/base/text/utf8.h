// Checks whether outside text is UTF-8 by RFC 3629: without overlong forms, surrogates, and
// characters beyond U+10FFFF.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep {

// The bytes of the first character; 0 if it is not UTF-8 or the text is empty.
size_t utf8_character_bytes(std::string_view text);

// Whether a character of UTF-8 text goes on with this byte: a text is not cut before it.
inline bool is_inside_utf8_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// The place of the first byte that is not UTF-8.
std::optional<size_t> find_no_utf8(std::string_view text);

inline bool is_utf8(std::string_view text) {
  return !find_no_utf8(text);
}

// UTF-8 without control characters, as labels, file names and one-line messages need.
bool is_printable_utf8(std::string_view text);

}  // namespace lockstep
