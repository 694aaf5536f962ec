// Tokens in a safetensors file: its only tensor.
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <span>

#include "comm/base/status.h"
#include "data/formats/tokens/token_range.h"

namespace lockstep::data {

// Finds where the tokens of a file lie in the file. kBadData: the message goes on after the file's
// name.
Result<TokenRange> tokens_in_safetensors(std::span<const uint8_t> file);

}  // namespace lockstep::data
