// Announces the samples of coming batches, where they are far away: the order is known to the end
// of the run, so what will be needed is fetched before it is.
//
// INVARIANT: of samples that were announced and whose batches are not used there are at most
// ahead_bytes() of their source, and the batch that goes beyond it.
//
// Thread-safety: of the loader's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "data/dataset/dataset.h"
#include "data/read/batch_sequence.h"

namespace lockstep::data {

class LookAhead {
 public:
  // `dataset` outlives it. Of data that are here it does nothing.
  LookAhead(const Dataset& dataset, BatchSequenceOptions sequence)
      : dataset_(dataset), sequence_(std::move(sequence)) {}

  // Announces as much as may be.
  void go_on();
  // The next batch, as the loader counts them, has been read.
  void has_used_one();

 private:
  const Dataset& dataset_;
  BatchSequence sequence_;
  std::deque<uint64_t> ahead_;  // bytes of each batch that is announced and not used
  uint64_t ahead_bytes_ = 0;
};

}  // namespace lockstep::data
