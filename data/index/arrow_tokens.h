// Thread-safety: a free function; any thread and process.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/index/dataset.h"
#include "data/index/token_stream.h"

namespace lockstep::data {

// Metadata of a schema: files next to each other with the same value hold parts of one stream.
inline constexpr char kArrowStreamKey[] = "lockstep.stream";

// The streams of tokens in Arrow files: each file is one, or several with the same kArrowStreamKey
// are. With the rows of lists as documents, where that is asked for; what goes on in the next file
// of a stream is one. Errors as open_dataset(). REQUIRES: paths is not empty.
Result<std::vector<TokenStream>> open_arrow_tokens(const std::vector<std::string>& paths,
                                                   const std::string& cache_dir,
                                                   const ProgressFn& progress,
                                                   bool with_documents = false);

}  // namespace lockstep::data
