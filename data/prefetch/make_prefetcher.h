// Chooses the prefetcher of a loader; prefetcher.h has the table.
//
// Thread-safety: free function; any thread.
#pragma once

#include <memory>

#include "comm/base/status.h"
#include "comm/run/plan/batch_sequence.h"
#include "data/prefetch/prefetcher.h"

namespace lockstep::data {

class Dataset;
class PrefetchPolicy;

// For the batches of `sequence`, from its first one on. `dataset` and `policy` outlive the
// prefetcher. With null for `policy` only far samples are asked for ahead. Errors as
// SampleBuffer::start().
Result<std::unique_ptr<Prefetcher>> make_prefetcher(const Dataset& dataset,
                                                    const BatchSequenceOptions& sequence,
                                                    PrefetchPolicy* policy);

}  // namespace lockstep::data
