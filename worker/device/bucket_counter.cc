#include "worker/device/bucket_counter.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "worker/device/device_marks.h"
#include "worker/device/device_memory.h"

namespace lockstep {
namespace {

constexpr uint32_t kStride = 16;  // words: a cache line

}  // namespace

Status BucketCounter::reserve() {
  if (words_ != nullptr) return Status::ok();
  std::vector<uint32_t> numbers(kMostBuckets + 2);
  std::iota(numbers.begin(), numbers.end(), 0u);
  LOCKSTEP_RETURN_IF_ERROR(upload_table(module_, numbers, &table_));
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(kFinished, DeviceLane::kCompute));
  LOCKSTEP_RETURN_IF_ERROR(module_.wait(kFinished));  // `numbers` is on this stack
  uint32_t* words = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(allocate_host(module_, &words, kWords * kStride));
  std::fill_n(words, kWords * kStride, 0u);
  words_ = words;
  begin_step();
  return Status::ok();
}

void BucketCounter::begin_step() {
  if (words_ == nullptr) return;
  uint32_t* word = words_ + (turn_++ % kWords) * kStride;
  std::atomic_ref(*word).store(0, std::memory_order_relaxed);
  word_.store(word, std::memory_order_release);
}

Status BucketCounter::count(uint32_t buckets) {
  uint32_t* word = word_.load(std::memory_order_relaxed);
  if (word == nullptr) return Status::ok();
  return module_.copy(DeviceLane::kGradients, word, table_ + std::min(buckets, kMostBuckets),
                      sizeof *word);
}

void BucketCounter::set(uint32_t buckets) {
  uint32_t* word = word_.load(std::memory_order_relaxed);
  if (word != nullptr) std::atomic_ref(*word).store(buckets, std::memory_order_relaxed);
}

uint32_t BucketCounter::finished() const {
  uint32_t* word = word_.load(std::memory_order_acquire);
  return word == nullptr ? 0 : std::atomic_ref(*word).load(std::memory_order_relaxed);
}

}  // namespace lockstep
