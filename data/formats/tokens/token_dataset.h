// Streams of token ids (token_stream.h) as a Dataset of sequences. The index is arithmetic: no
// memory per sample, but a copy of those that lie in several pieces of a stream.
//
// Sample i of a stream, which but for Arrow's is a file, is its tokens [i * block, (i + 1) *
// block], one more than a block: what follows the last one is its label, and begins the next
// sample. So every token is predicted once, but the first of a stream, and a rest shorter than a
// block at its end. No sequence crosses streams.
//
// Text with a tokenizer (SampleCut) is cut so, too, once its tokens are made (tokenized_text.h);
// its vocabulary is the tokenizer's.
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

// No token is beyond the vocabulary: kBadData names file and offset. For that every token is read
// once, and the largest is kept in `cache_dir` (empty: nowhere) for whoever opens the files next: a
// worker that takes the place of a dead one must not have to read a terabyte first. Files that
// change later are noticed by whoever reads the sample (sample_reader.h).
// REQUIRES: paths is not empty.
Result<std::unique_ptr<Dataset>> open_token_dataset(const std::vector<std::string>& paths,
                                                    const std::string& format, const SampleCut& cut,
                                                    const std::string& cache_dir,
                                                    const ProgressFn& progress);

}  // namespace lockstep::data
