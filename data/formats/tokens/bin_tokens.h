// Finds where the tokens of a file lie, for formats whose files say so themselves, or say nothing.
// A message goes on after the file's name.
//
// The bytes come from outside and never decide how much memory is allocated.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "comm/base/status.h"
#include "data/formats/tokens/token_range.h"

namespace lockstep::data {

// True if `file` begins with llm.c's header.
bool has_token_header(std::span<const uint8_t> file);

// Each refuses an empty, truncated or too long file as kBadData.
Result<TokenRange> tokens_in_bin(std::span<const uint8_t> file);  // or *.npy
Result<TokenRange> tokens_in_bare_u32(std::span<const uint8_t> file);
Result<TokenRange> tokens_in_text(std::span<const uint8_t> file);  // its bytes

}  // namespace lockstep::data
