// How many different tokens a data set has. The number comes from the tokenizer, or from the job,
// or from the largest token.
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

// kBadData if tokens of `stream` and of `first` differ in size.
Status check_alike(const TokenStream& stream, const TokenStream& first);

// The size of the vocabulary. kBadData, naming file and offset, if a token is not below it. `bpe`:
// the vocabulary that made the tokens, or null. `key` stands for the content of the streams:
// `cache_dir` keeps the largest token under it, so Lockstep reads all tokens only once
// (token_dataset.h). REQUIRES: streams is not empty.
Result<uint32_t> token_vocabulary(const std::vector<TokenStream>& streams, const std::string& key,
                                  const SampleCut& cut, const BpeVocabulary* bpe,
                                  const std::string& cache_dir, const ProgressFn& progress);

}  // namespace lockstep::data
