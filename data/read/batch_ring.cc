#include "data/read/batch_ring.h"

#include <chrono>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/limits.h"

namespace lockstep::data {

Result<std::unique_ptr<BatchRing>> BatchRing::make(const Sizes& sizes, uint32_t ahead) {
  std::unique_ptr<BatchRing> ring(new BatchRing(sizes));
  LOCKSTEP_RETURN_IF_ERROR(ring->add_places(uint64_t{ahead} + 1));
  ring->ahead_ = ahead;
  return ring;
}

Status BatchRing::add_places(uint64_t count) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      BatchMemory memory,
      BatchMemory::make(count, sizes_.samples, sizes_.input_bytes, sizes_.labels_bytes));
  const std::lock_guard lock(mutex_);
  for (uint64_t i = 0; i < count; ++i) {
    Place& place = places_.emplace_back();
    place.inputs = memory.inputs(i);
    place.labels = memory.labels(i);
    free_.push_back(&place);
  }
  memory_.push_back(std::move(memory));
  return Status::ok();
}

BatchRing::Place* BatchRing::wait_for_place() {
  std::unique_lock lock(mutex_);
  if (ready_.size() >= ahead_)
    space_.wait(lock, [&] { return stop_ || ready_.size() <= ahead_ / 2; });
  if (stop_) return nullptr;
  if (making_ == nullptr) {
    LOCKSTEP_CHECK(!free_.empty(), "a place for every batch that may be ready");
    making_ = free_.back();
    free_.pop_back();
  }
  return making_;
}

bool BatchRing::made() {
  const std::lock_guard lock(mutex_);
  ready_.push_back(std::exchange(making_, nullptr));
  came_.notify_one();
  return !stop_;
}

void BatchRing::end_with(Status status) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(status);
  all_made_ = true;
  came_.notify_one();
}

Result<const BatchRing::Place*> BatchRing::take() {
  std::unique_lock lock(mutex_);
  const auto available = [&] { return !ready_.empty() || all_made_; };
  if (!available()) {
    const auto begin = std::chrono::steady_clock::now();
    // What it holds stays its own until there is another: the maker has places enough.
    came_.wait(lock, available);
    waited_ns_ += static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  }
  if (ready_.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(failure_);
    return static_cast<const Place*>(nullptr);
  }
  if (held_ != nullptr) free_.push_back(held_);
  held_ = ready_.front();
  ready_.pop_front();
  if (ready_.size() <= ahead_ / 2) space_.notify_one();
  return static_cast<const Place*>(held_);
}

bool BatchRing::set_ahead(uint32_t ahead) {
  const uint64_t places = uint64_t{ahead} + 1;
  const uint64_t had = places_.size();  // which only this thread changes
  if (places > had) {
    if (places * memory_.front().batch_bytes() > limits::kTunedBatchBytes) return false;
    if (!add_places(places - had).is_ok()) return false;
  }
  const std::lock_guard lock(mutex_);
  ahead_ = ahead;
  space_.notify_one();
  return true;
}

uint32_t BatchRing::ahead() const {
  const std::lock_guard lock(mutex_);
  return ahead_;
}

uint32_t BatchRing::ready() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(ready_.size());
}

void BatchRing::stop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  space_.notify_all();
}

}  // namespace lockstep::data
