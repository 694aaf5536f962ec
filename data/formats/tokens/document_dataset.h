// Documents of tokens (documents.h) as a Dataset of sequences that are made when they are read:
//
//   pad   a sample is a piece, in the order of the files or, SampleCut::by_length, from short to
//         long; behind it nothing is to be predicted. Attention that looks back never sees that.
//   pack  a sample is a pack (best_fit.h) of pieces, in the order of the files, each with positions
//         from 0 on, by which a model keeps them apart; behind them each token is at position 0.
//
// A part of it (Dataset::of_documents) has whole documents, and packs of its own: which ones it has
// does not depend on any of that.
//
// Behind the pieces are tokens 0 with kIgnoredLabel. Packs are made once, of all documents of the
// split, or of its part (adr/0006): what a sample is does not depend on the epoch. Takes 12 bytes a
// piece, which parts share; with packs, by length or for a part 4 more, and 8 a pack.
//
// Thread-safety: a free function; any thread and process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/bpe/vocabulary.h"
#include "data/dataset/dataset.h"
#include "data/dataset/sample_cut.h"
#include "data/formats/tokens/token_stream.h"

namespace lockstep::data {

// Errors of cut_documents() and token_vocabulary(). REQUIRES: streams is not empty, all have tokens
// of one size; cut.documents is not kStream.
Result<std::unique_ptr<Dataset>> open_document_dataset(
    std::vector<TokenStream> streams, const std::string& format, const SampleCut& cut,
    const BpeVocabulary* bpe, const std::string& cache_dir, const ProgressFn& progress);

}  // namespace lockstep::data
