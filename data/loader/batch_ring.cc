#include "data/loader/batch_ring.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/limits.h"

namespace lockstep::data {
namespace {

bool is_held(const BatchRing::Place& place) {
  return place.given_back != nullptr && !place.given_back->load(std::memory_order_acquire);
}

}  // namespace

Result<std::unique_ptr<BatchRing>> BatchRing::make(const Sizes& sizes, uint32_t ahead) {
  std::unique_ptr<BatchRing> ring(new BatchRing(sizes));
  LOCKSTEP_RETURN_IF_ERROR(ring->add_places(uint64_t{ahead} + 1));
  ring->ahead_ = ahead;
  return ring;
}

Result<std::shared_ptr<const BatchMemory>> BatchRing::memory_for(uint64_t batches) const {
  LOCKSTEP_ASSIGN_OR_RETURN(
      BatchMemory memory,
      BatchMemory::make(batches, sizes_.samples, sizes_.input_bytes, sizes_.labels_bytes));
  return std::shared_ptr<const BatchMemory>(std::make_shared<BatchMemory>(std::move(memory)));
}

Status BatchRing::add_places(uint64_t count) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<const BatchMemory> memory, memory_for(count));
  const std::lock_guard lock(mutex_);
  batch_bytes_ = memory->batch_bytes();
  for (uint64_t i = 0; i < count; ++i) {
    Place& place = places_.emplace_back();
    place.inputs = memory->inputs(i);
    place.labels = memory->labels(i);
    place.memory = memory;
    free_.push_back(&place);
  }
  return Status::ok();
}

// Gives the maker a place again that may have been shared. Memory that is still held is replaced.
Status BatchRing::renew(Place& place) const {
  if (is_held(place)) {
    LOCKSTEP_ASSIGN_OR_RETURN(place.memory, memory_for(1));
    place.inputs = place.memory->inputs(0);
    place.labels = place.memory->labels(0);
  }
  place.given_back.reset();
  return Status::ok();
}

// Prefers the place used last, which is in the cache.
Status BatchRing::choose_place() {
  LOCKSTEP_CHECK(!free_.empty(), "a place for every batch that may be ready");
  const auto unheld = std::find_if_not(free_.rbegin(), free_.rend(),
                                       [](const Place* place) { return is_held(*place); });
  const auto chosen = unheld == free_.rend() ? free_.end() - 1 : unheld.base() - 1;
  LOCKSTEP_RETURN_IF_ERROR(renew(**chosen));
  making_ = *chosen;
  free_.erase(chosen);
  return Status::ok();
}

BatchRing::Place* BatchRing::wait_for_place() {
  std::unique_lock lock(mutex_);
  if (ready_.size() >= ahead_)
    space_.wait(lock, [&] { return stop_ || ready_.size() <= ahead_ / 2; });
  if (stop_) return nullptr;
  if (making_ != nullptr) return making_;
  failure_ = choose_place();
  if (failure_.is_ok()) return making_;
  all_made_ = true;
  came_.notify_one();
  return nullptr;
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
    // The consumer keeps the batch it holds until there is another: the maker has enough places.
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

std::shared_ptr<const Batch> BatchRing::share() {
  // The last holder to let go gives the place back, after its last look at the batch.
  struct Shared {
    explicit Shared(const Place& place) : batch(place.batch), memory(place.memory) {}
    ~Shared() { given_back->store(true, std::memory_order_release); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    const Batch batch;
    const std::shared_ptr<const BatchMemory> memory;
    const std::shared_ptr<std::atomic<bool>> given_back =
        std::make_shared<std::atomic<bool>>(false);
  };
  LOCKSTEP_CHECK(held_ != nullptr && held_->given_back == nullptr, "a batch is shared once");
  const auto shared = std::make_shared<Shared>(*held_);
  held_->given_back = shared->given_back;
  return {shared, &shared->batch};
}

bool BatchRing::set_ahead(uint32_t ahead) {
  const uint64_t places = uint64_t{ahead} + 1;
  const uint64_t had = places_.size();  // which only this thread changes
  if (places > had) {
    if (places * batch_bytes_ > limits::kTunedBatchBytes) return false;
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
