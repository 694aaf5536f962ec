// Thread-safety: a value.
#pragma once

#include <cstdint>

namespace lockstep::data {

// Where the tokens of a file lie in the file.
struct TokenRange {
  uint64_t offset = 0;
  uint64_t tokens = 0;
  uint32_t token_bytes = 0;
  bool is_signed = false;  // as the file's type says; for messages
};

}  // namespace lockstep::data
