#include "data/prefetch/far_prefetcher.h"

#include "data/dataset/dataset.h"
#include "data/source/view/remote_files.h"

namespace lockstep::data {

void FarPrefetcher::before(const PlannedBatch& batch) {
  announce();
  near_->before(batch);
}

void FarPrefetcher::after(const PlannedBatch& batch) {
  near_->after(batch);
  if (ahead_.empty()) return;
  ahead_bytes_ -= ahead_.front();
  ahead_.pop_front();
  announce();  // now, since the loader may wait long for a place for its next batch
}

// As much as may be.
void FarPrefetcher::announce() {
  while (ahead_bytes_ < dataset_.far()->ahead_bytes()) {
    const auto batch = sequence_.next();
    if (!batch) return;
    const EpochOrder& order = sequence_.order_of(batch->epoch);
    uint64_t bytes = 0;
    for (uint64_t position = batch->range.begin; position < batch->range.end; ++position)
      bytes += dataset_.announce(order.at(position));
    ahead_.push_back(bytes);
    ahead_bytes_ += bytes;
  }
}

}  // namespace lockstep::data
