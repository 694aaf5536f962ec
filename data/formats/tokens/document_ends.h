// Finds where documents end, if a token ends them. Finding the ends reads all tokens, so Lockstep
// keeps them:
//
//     "LKDOCS01" | number of ends (8) | ends (8 each) | XXH3-128 of all before, hex (32)
//
// Numbers are little-endian. An end is the place after the token, counted in tokens of all streams.
//
// Thread-safety: a free function; any thread and process. Files are replaced whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/formats/tokens/token_stream.h"

namespace lockstep::data {

// The ends, rising. `key` stands for the content of the streams: it finds ends kept in `cache_dir`
// (empty: nothing is kept). If the ends cannot be kept, the only cost is finding them again.
// kBadData if a file changes meanwhile; kUsage if there are more than limits::kDocumentPieces.
Result<std::vector<uint64_t>> document_ends(const std::vector<TokenStream>& streams, uint64_t token,
                                            const std::string& key, const std::string& cache_dir,
                                            const ProgressFn& progress);

}  // namespace lockstep::data
