// Any bytes as an index of Megatron-LM: refused, or sequences that lie one after another, and
// documents of these.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "data/formats/tokens/megatron_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::data;
  const auto index = parse_megatron_index(std::span(data, size));
  if (!index.is_ok()) {
    LOCKSTEP_CHECK(index.status().code() == Code::kBadData, "damage is bad data");
    return 0;
  }
  const auto ends = megatron_documents(std::span(data, size));
  LOCKSTEP_CHECK(ends.is_ok(), "an index that is taken has documents");
  LOCKSTEP_CHECK(std::is_sorted(ends->begin(), ends->end()), "documents follow each other");
  LOCKSTEP_CHECK(ends->empty() ? index->tokens == 0 : ends->back() == index->tokens,
                 "every token is of a document");
  LOCKSTEP_CHECK(index->token_bytes == 2 || index->token_bytes == 4, "a token has a size");
  LOCKSTEP_CHECK(index->bin_bytes() <= limits::kDatasetBytes, "content has a limit");
  LOCKSTEP_CHECK(index->sequences <= size / 12, "every sequence is in the tables");
  LOCKSTEP_CHECK(index->sequences > 0 || index->tokens == 0, "tokens are in sequences");
  return 0;
}
