// Announces the samples of coming batches to the source they come from, which fetches them
// meanwhile (data/source/cache/fetch_queue.h).
//
// INVARIANT: samples that were announced and whose batches are not used have at most ahead_bytes()
// of their source, plus the batch that goes beyond it.
//
// Thread-safety: as Prefetcher.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "comm/run/plan/batch_sequence.h"
#include "data/dataset/dataset.h"
#include "data/prefetch/prefetcher.h"

namespace lockstep::data {

class FarPrefetcher final : public Prefetcher {
 public:
  // `near`: for the samples that are here. REQUIRES: the data set is far, at least in part.
  FarPrefetcher(As<EncodedImages> images, BatchSequenceOptions sequence,
                std::unique_ptr<Prefetcher> near)
      : images_(std::move(images)), sequence_(std::move(sequence)), near_(std::move(near)) {}

  void before(const PlannedBatch& batch) override;
  void after(const PlannedBatch& batch) override;
  BufferedBatch buffered() const override { return near_->buffered(); }
  void stop() override { near_->stop(); }

 private:
  void announce();

  const As<EncodedImages> images_;
  BatchSequence sequence_;
  const std::unique_ptr<Prefetcher> near_;
  std::deque<uint64_t> ahead_;  // bytes of each batch that is announced and not used
  uint64_t ahead_bytes_ = 0;
};

}  // namespace lockstep::data
