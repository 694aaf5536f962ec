// Thread-safety: a free function; any thread and process.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"
#include "data/formats/tokens/token_stream.h"

namespace lockstep::data {

// Metadata of a schema: adjacent files with the same value hold parts of one stream.
inline constexpr char kArrowStreamKey[] = "lockstep.stream";

// Further metadata, for lists: the batches (such as "0,7") whose last row does not end its
// document. The document goes on in the first row of the stream's next batch.
inline constexpr char kArrowOpenKey[] = "lockstep.open";

// The streams of tokens in Arrow files. A file is a stream; adjacent files with the same
// kArrowStreamKey together are one stream. `with_documents`: rows of lists are documents. Errors as
// open_dataset(). REQUIRES: paths is not empty.
Result<std::vector<TokenStream>> open_arrow_tokens(const std::vector<std::string>& paths,
                                                   const ColumnNames& columns,
                                                   const std::string& cache_dir,
                                                   const ProgressFn& progress,
                                                   bool with_documents = false);

}  // namespace lockstep::data
