#include "data/prefetch/far_prefetcher.h"

#include "data/source/far_files/remote_files.h"

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

// Announces as many bytes ahead as the options allow.
void FarPrefetcher::announce() {
  // All sources have the same options, so one of them knows how far ahead to look.
  const source::RemoteFiles& far = *images_.dataset().far().front();
  while (ahead_bytes_ < far.ahead_bytes()) {
    const auto batch = sequence_.next();
    if (!batch) return;
    const EpochOrder& order = sequence_.order_of(batch->epoch);
    uint64_t bytes = 0;
    for (uint64_t position = batch->range.begin; position < batch->range.end; ++position) {
      const auto [from, number] = images_.at(order.at(position));
      bytes += from.announce(number);
    }
    ahead_.push_back(bytes);
    ahead_bytes_ += bytes;
  }
}

}  // namespace lockstep::data
