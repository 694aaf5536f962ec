#include "data/prefetch/memory_prefetcher.h"

#include <utility>

#include "data/prefetch/prefetch_policy.h"
#include "data/prefetch/sample_buffer.h"

namespace lockstep::data {

MemoryPrefetcher::MemoryPrefetcher(const Dataset& dataset, BatchSequenceOptions sequence,
                                   PrefetchPolicy& policy)
    : dataset_(dataset), options_(std::move(sequence)), policy_(policy) {}

MemoryPrefetcher::~MemoryPrefetcher() = default;

Result<std::unique_ptr<MemoryPrefetcher>> MemoryPrefetcher::start(const Dataset& dataset,
                                                                  BatchSequenceOptions sequence,
                                                                  PrefetchPolicy& policy,
                                                                  When when) {
  const Step first_step = sequence.first_step;
  const uint32_t first_slot = sequence.slots.begin;
  std::unique_ptr<MemoryPrefetcher> made(
      new MemoryPrefetcher(dataset, std::move(sequence), policy));
  if (when == When::kFromDisk) {
    made->watch_.emplace(policy.blocks_read());
    policy.is_on_use();
  } else {
    LOCKSTEP_RETURN_IF_ERROR(made->read_ahead_from(first_step, first_slot));
  }
  return made;
}

Status MemoryPrefetcher::read_ahead_from(Step step, uint32_t slot) {
  BatchSequenceOptions from_here = options_;
  from_here.first_step = step;
  from_here.first_slot = slot;
  auto samples = std::make_shared<SampleSequence>(std::move(from_here));
  LOCKSTEP_ASSIGN_OR_RETURN(auto buffer,
                            SampleBuffer::start(
                                dataset_, [samples] { return samples->next(); }, policy_));
  first_ = 0;
  const std::lock_guard lock(mutex_);
  buffer_ = std::move(buffer);
  if (is_stopped_) buffer_->stop();
  return Status::ok();
}

void MemoryPrefetcher::read_on_use() {
  std::unique_ptr<SampleBuffer> gone;
  {
    const std::lock_guard lock(mutex_);
    gone = std::move(buffer_);
  }
  gone.reset();  // which waits for its reads
  policy_.is_on_use();
}

void MemoryPrefetcher::before(const PlannedBatch& batch) {
  if (!watch_) return;
  if (watch_->is_from_disk() && buffer_ == nullptr) {
    // Reading on use goes on if reading ahead cannot begin.
    const Status begun = read_ahead_from(batch.step, batch.slot);
    if (!begun.is_ok()) {
      policy_.goes_on_without(begun);
      watch_.reset();
      return;
    }
  } else if (!watch_->is_from_disk() && buffer_ != nullptr) {
    read_on_use();
  }
  watch_->before();
}

void MemoryPrefetcher::after(const PlannedBatch& batch) {
  first_ += batch.range.size();
  if (watch_) watch_->after(batch.range.size());
}

void MemoryPrefetcher::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  if (buffer_ != nullptr) buffer_->stop();
}

}  // namespace lockstep::data
