// Text files as tokens of a BPE vocabulary (data/bpe), made once and kept in the cache directory.
//
// The copy belongs to the content of the text (all of it up to 1 GiB, else as fingerprints read
// it), to its size and time, to the vocabulary and to the version of this code: where one of these
// is another, it is made anew. Tokens are uint16 where the vocabulary allows it, else uint32.
//
// A file is cut in front of blanks that follow something else, where no token crosses, and the
// parts are encoded on several threads; the tokens are those of the whole.
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

// kBadData, naming the file, where it is not UTF-8, or goes on for 16 MiB without a blank; kUsage
// where it is a file of the vocabulary; errors of the cache as open_inflated().
Result<TokenizedText> open_tokenized(const std::string& path, const BpeVocabulary& vocabulary,
                                     const std::string& cache_dir, const ProgressFn& progress);

// The vocabulary of cut.tokenizer, or null where that names none. kUsage where it is not the one
// that the run was begun with.
Result<std::unique_ptr<BpeVocabulary>> open_vocabulary(const SampleCut& cut);

// kUsage where a tokenizer is named for what is no text.
Status check_is_text(const SampleCut& cut, const std::string& path, const std::string& format);

}  // namespace lockstep::data
