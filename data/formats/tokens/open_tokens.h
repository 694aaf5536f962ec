// Thread-safety: a free function; any thread and process.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/bpe/vocabulary.h"
#include "data/formats/tokens/token_stream.h"

namespace lockstep::data {

// Of these files (token_files.h), which are of this format, one or more streams in their order.
// Text becomes tokens of `vocabulary`, where there is one, else of bytes. Errors as open_dataset().
// With their documents, where these are asked for and the files say them: each file of text, the
// documents of Megatron-LM's indexes, each list of Arrow's. REQUIRES: paths is not empty.
Result<std::vector<TokenStream>> open_token_streams(const std::vector<std::string>& paths,
                                                    const std::string& format,
                                                    const BpeVocabulary* vocabulary,
                                                    const std::string& cache_dir,
                                                    const ProgressFn& progress,
                                                    bool with_documents = false);

}  // namespace lockstep::data
