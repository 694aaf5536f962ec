// The documents of token streams, cut into pieces that fit into a sequence.
//
// A document ends
// - where its stream ends
// - where the files say so (token_stream.h)
// - after every end token that the job names; this token is the document's last token.
//
// In a document of n tokens, n - 1 can be predicted. A model gets the first n - 1 tokens, each with
// the next token as its label. A document longer than a sequence is cut like a stream: every piece
// begins with the last label of the piece before, so no prediction is lost. From there on, a piece
// is a document of its own.
//
// Thread-safety: free functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/formats/tokens/token_stream.h"

namespace lockstep::data {

struct DocumentPieces {
  // In the order of the files. A piece is `length` inputs, and a label after the last input.
  std::vector<uint64_t> begins;   // counted in tokens of all streams
  std::vector<uint32_t> lengths;  // 1 to the block
  uint64_t documents = 0;         // with something to predict
  uint64_t too_short = 0;         // with nothing to predict: one token, or none
};

// `key`: as for document_ends(). Errors:
// - kUsage: neither the files nor a token say where documents end
// - kUsage: the end token never occurs
// - kUsage: there are too many pieces (limits::kDocumentPieces)
// - kBadData: there is nothing to predict
//
// REQUIRES: streams is not empty, and comes from open_token_streams() with documents.
Result<DocumentPieces> cut_documents(const std::vector<TokenStream>& streams, uint32_t block,
                                     std::optional<uint64_t> end_token, const std::string& key,
                                     const std::string& cache_dir, const ProgressFn& progress);

}  // namespace lockstep::data
