// The documents of token streams, cut into pieces that fit into a sequence.
//
// A document ends where its stream ends, where the files say it (token_stream.h), and behind every
// token that was named for it, which is its last one. Of n tokens n - 1 can be predicted: its first
// n - 1 are what a model is given, each with the next one as its label. A longer one is cut like
// a stream: every piece begins with the last label of the one before, so that no prediction is
// lost, and is from there on a document of its own.
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
  // In the order of the files. A piece is `length` inputs, and a label behind the last of them.
  std::vector<uint64_t> begins;   // counted in tokens of all the streams
  std::vector<uint32_t> lengths;  // 1 to the block
  uint64_t documents = 0;         // with a prediction
  uint64_t too_short = 0;         // without one: of one token, or of none
};

// kUsage where neither the files nor a token say where documents end, where there is none of this
// token, or where there are too many pieces (limits::kDocumentPieces); kBadData where nothing can
// be predicted. `key` as document_ends() takes it. REQUIRES: streams is not empty; those of
// open_token_streams() with documents.
Result<DocumentPieces> cut_documents(const std::vector<TokenStream>& streams, uint32_t block,
                                     std::optional<uint64_t> end_token, const std::string& key,
                                     const std::string& cache_dir, const ProgressFn& progress);

}  // namespace lockstep::data
