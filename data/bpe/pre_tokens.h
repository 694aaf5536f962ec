// Text cut as GPT-2 cuts it, before its pieces become tokens:
//
//     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// Letters and numbers are Unicode's (unicode_ranges.h); blanks are what has the property
// White_Space. One pass, without looking back.
//
// Source: openai/gpt-2, src/encoder.py.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::data {

// The bytes of the first piece of `text`. REQUIRES: not empty, and valid UTF-8.
size_t pre_token_bytes(std::string_view text);

// Whether the character that begins at text[at] is a blank. REQUIRES: as above, and at < size.
bool is_blank_at(std::string_view text, size_t at);

}  // namespace lockstep::data
