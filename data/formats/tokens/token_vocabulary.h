// How many different tokens a data set has: as many as its tokenizer, or as were asked for, or as
// the largest token shows.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/bpe/vocabulary.h"
#include "data/dataset/sample_cut.h"
#include "data/formats/tokens/token_stream.h"

namespace lockstep::data {

// kBadData where a token of the one has another size than one of the other.
Status check_alike(const TokenStream& stream, const TokenStream& first);

// No token of the streams is this or more: kBadData names file and offset. `bpe` is what made them,
// or null. `key` stands for their content: under it the largest token is kept in `cache_dir`, so
// that all of them are read once (token_dataset.h). REQUIRES: streams is not empty.
Result<uint32_t> token_vocabulary(const std::vector<TokenStream>& streams, const std::string& key,
                                  const SampleCut& cut, const BpeVocabulary* bpe,
                                  const std::string& cache_dir, const ProgressFn& progress);

}  // namespace lockstep::data
