// Any bytes as a file of tokens: refused, or tokens that fill it to its end.
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/base/check.h"
#include "data/formats/tokens/token_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::data;
  for (const char* format : {"tokens", "tokens_u32", "text"}) {
    const auto range = token_format(format).range("f.bin", std::span(data, size));
    if (!range.is_ok()) {
      LOCKSTEP_CHECK(range.status().code() == Code::kBadData, "damage is bad data");
      continue;
    }
    LOCKSTEP_CHECK(range->offset + range->tokens * range->token_bytes == size,
                   "tokens fill the file");
  }
  return 0;
}
