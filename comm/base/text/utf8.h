// Text from outside, which may be anything, as UTF-8: RFC 3629, without overlong forms, surrogates
// and what is beyond U+10FFFF.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep {

// Bytes of the character at the front; 0: there is none, or the text is empty.
size_t utf8_character_bytes(std::string_view text);

// Where the first byte lies that is not UTF-8.
std::optional<size_t> find_no_utf8(std::string_view text);

inline bool is_utf8(std::string_view text) {
  return !find_no_utf8(text);
}

// And without control characters: what may be in labels, file names and messages of one line.
bool is_printable_utf8(std::string_view text);

}  // namespace lockstep
