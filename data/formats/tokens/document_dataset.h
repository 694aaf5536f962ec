// Documents of tokens (documents.h) as a Dataset of sequences that are made when read:
//
//   pad   a sample is a piece, in the order of the files or, with SampleCut::by_length, from short
//         to long. After the piece there is nothing to predict. Attention that looks back never
//         sees the padding.
//   pack  a sample is a pack (best_fit.h) of pieces, in the order of the files. Each piece has
//         positions from 0 on, so a model keeps the pieces apart. Tokens after the pieces are at
//         position 0.
//
// A part of the dataset (WholeDocuments::part) has whole documents, and packs of its own. Neither
// padding nor packing influences which documents a part has.
//
// After the pieces come tokens 0 with kIgnoredLabel. Lockstep packs once, over all documents of the
// split or of its part (adr/0006): a sample does not depend on the epoch. Memory: 12 bytes a piece,
// which parts share; 4 more a piece with packs, by length or for a part; 8 a pack.
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

// Errors of cut_documents() and token_vocabulary(). REQUIRES: streams is not empty; all streams
// have tokens of one size; cut.documents is not kStream.
Result<std::unique_ptr<Dataset>> open_document_dataset(
    std::vector<TokenStream> streams, const std::string& format, const SampleCut& cut,
    const BpeVocabulary* bpe, const std::string& cache_dir, const ProgressFn& progress);

}  // namespace lockstep::data
