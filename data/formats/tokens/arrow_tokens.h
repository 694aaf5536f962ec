// Thread-safety: a free function; any thread and process.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/formats/tokens/token_stream.h"

namespace lockstep::data {

// Metadata of a schema: files next to each other with the same value hold parts of one stream.
inline constexpr char kArrowStreamKey[] = "lockstep.stream";

// And beside it, of lists: the batches, as "0,7", whose last row is not the end of a document,
// which goes on in the first row of what comes next of the stream.
inline constexpr char kArrowOpenKey[] = "lockstep.open";

// The streams of tokens in Arrow files: each file is one, or several with the same kArrowStreamKey
// are. With the rows of lists as documents, where that is asked for. Errors as open_dataset().
// REQUIRES: paths is not empty.
Result<std::vector<TokenStream>> open_arrow_tokens(const std::vector<std::string>& paths,
                                                   const std::string& cache_dir,
                                                   const ProgressFn& progress,
                                                   bool with_documents = false);

}  // namespace lockstep::data
