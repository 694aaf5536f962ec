// Where documents end that are ended by a token. For that all tokens are read, so it is kept:
//
//     "LKDOCS01" | number of ends (8) | ends (8 each) | XXH3-128 of all before, hex (32)
//
// numbers little-endian. An end is the place behind the token, counted in tokens of all streams.
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

// Rising. `key` stands for the content of the streams: what was kept in `cache_dir` (empty:
// nowhere) under it is taken from there; what cannot be kept costs its time again. kBadData where a
// file changes meanwhile, kUsage where there are more than limits::kDocumentPieces.
Result<std::vector<uint64_t>> document_ends(const std::vector<TokenStream>& streams, uint64_t token,
                                            const std::string& key, const std::string& cache_dir,
                                            const ProgressFn& progress);

}  // namespace lockstep::data
