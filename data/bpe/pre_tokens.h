// Cuts text as GPT-2 does, into the pieces that become tokens:
//
//     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// Letters and numbers are Unicode's (unicode_ranges.h). Blanks are the characters with the property
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

// The number of bytes of the first piece. REQUIRES: `text` is not empty and valid UTF-8.
size_t pre_token_bytes(std::string_view text);

// True if the character at text[at] is a blank. REQUIRES: as above, and at < text.size().
bool is_blank_at(std::string_view text, size_t at);

}  // namespace lockstep::data
