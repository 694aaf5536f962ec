// Text files as tokens of a BPE vocabulary (data/bpe), made once and kept in the cache directory.
//
// A copy belongs to four things. If one changes, Lockstep makes the copy again:
// - the content of the text (all of it up to 1 GiB, else what fingerprints read of it)
// - the size and time of the text
// - the vocabulary
// - the version of this code
//
// Tokens are uint16 if the vocabulary allows it, else uint32.
//
// Lockstep cuts a file in front of blanks that follow something else, where no token crosses, and
// encodes the parts on several threads. The cuts change no token.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/bpe/vocabulary.h"
#include "data/dataset/sample_cut.h"
#include "data/files/mapped_file.h"

namespace lockstep::data {

struct TokenizedText {
  MappedFile file;
  uint64_t tokens = 0;  // from the first byte on
  uint32_t token_bytes = 0;
};

// Errors:
// - kBadData, naming the file: the text is not UTF-8, or has 16 MiB without a blank
// - kUsage: the text is a file of the vocabulary
// - errors of the cache as open_inflated()
Result<TokenizedText> open_tokenized(const std::string& path, const BpeVocabulary& vocabulary,
                                     const std::string& cache_dir, const ProgressFn& progress);

// The vocabulary of cut.tokenizer; null if it names none. kUsage if the vocabulary is not the one
// that the run began with.
Result<std::unique_ptr<BpeVocabulary>> open_vocabulary(const SampleCut& cut);

// kUsage if `cut` names a tokenizer for data that are no text.
Status check_is_text(const SampleCut& cut, const std::string& path, const std::string& format);

}  // namespace lockstep::data
