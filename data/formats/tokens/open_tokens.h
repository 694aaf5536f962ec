// Thread-safety: a free function; any thread and process.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"
#include "data/bpe/vocabulary.h"
#include "data/formats/tokens/token_stream.h"

namespace lockstep::data {

// Opens these files of this format (token_format.h) as one or more streams, in the order of the
// files. `columns`: of Arrow, which one holds the tokens. Text becomes tokens of `vocabulary`;
// without a vocabulary every byte is a token.
//
// `with_documents`: the streams also have the documents that the files state: each file of text,
// the documents of Megatron-LM's indexes, each list of Arrow. Errors as open_dataset(). REQUIRES:
// paths is not empty.
Result<std::vector<TokenStream>> open_token_streams(
    const std::vector<std::string>& paths, const std::string& format, const ColumnNames& columns,
    const BpeVocabulary* vocabulary, const std::string& cache_dir, const ProgressFn& progress,
    bool with_documents = false);

}  // namespace lockstep::data
