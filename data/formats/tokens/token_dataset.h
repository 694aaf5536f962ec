// Streams of token ids (token_stream.h) as a Dataset of sequences. The index is arithmetic: it
// takes no memory per sample, but a copy of samples that lie in several pieces of a stream.
//
// Sample i of a stream is its tokens [i * block, (i + 1) * block], one more than a block. The last
// token is a label, and begins the next sample. So every token is predicted once, except the first
// of a stream, and a rest shorter than a block at the end of the stream. A stream is a file, except
// for Arrow. No sequence crosses streams.
//
// Text with a tokenizer (SampleCut) is cut the same way, once its tokens are made
// (tokenized_text.h). Its vocabulary is the tokenizer's.
//
// Thread-safety: a free function; any thread and process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/dataset/dataset.h"
#include "data/dataset/sample_cut.h"

namespace lockstep::data {

// kBadData, naming file and offset, if a token is beyond the vocabulary. The check reads every
// token once, and keeps the largest token in `cache_dir` (empty: nowhere) for the next process that
// opens the files. Without the kept token, a worker that replaces a dead one might read a terabyte
// first. A reader of samples notices later changes of the files (sample_reader.h). REQUIRES: paths
// is not empty.
Result<std::unique_ptr<Dataset>> open_token_dataset(const std::vector<std::string>& paths,
                                                    const std::string& format, const SampleCut& cut,
                                                    const std::string& cache_dir,
                                                    const ProgressFn& progress);

}  // namespace lockstep::data
