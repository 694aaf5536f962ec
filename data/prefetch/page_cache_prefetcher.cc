#include "data/prefetch/page_cache_prefetcher.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "comm/base/limits.h"

namespace lockstep::data {
namespace {

// Counts blocks, including those that were asked for. For kernels that count no blocks, it counts
// page faults that waited.
uint64_t disk_reads_of_this_thread() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_inblock) + static_cast<uint64_t>(usage.ru_majflt);
}

// Asks for all pages that hold some of the bytes. A hint: reading works without it.
void ask_for(const uint8_t* begin, uint64_t bytes) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(begin) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(begin) + bytes;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that was rounded as a number
  (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_WILLNEED);
}

}  // namespace

PageCachePrefetcher::Kernel PageCachePrefetcher::kernel() {
  return {disk_reads_of_this_thread, ask_for};
}

PageCachePrefetcher::PageCachePrefetcher(As<StoredSamples> samples, BatchSequenceOptions sequence,
                                         uint64_t ahead_bytes, Kernel asked)
    : samples_(std::move(samples)),
      options_(std::move(sequence)),
      sample_bytes_(samples_.dataset().shape().stored_bytes()),
      ahead_samples_(
          std::clamp<uint64_t>(ahead_bytes / sample_bytes_, 1, limits::kReadAheadSamples)),
      kernel_(std::move(asked)) {}

void PageCachePrefetcher::before(const PlannedBatch& batch) {
  if (cold_left_ == 0) return;
  if (is_first_) disk_reads_ = kernel_.disk_reads();
  const uint64_t ahead = is_first_ ? 0 : ahead_samples_;
  if (!asking_) {
    BatchSequenceOptions from_here = options_;
    from_here.first_step = batch.step;
    from_here.first_slot = batch.slot;
    asking_.emplace(std::move(from_here));
    asked_ = 0;
  }
  for (; asked_ < std::max(ahead, batch.range.size()); ++asked_) {
    const auto sample = asking_->next();
    if (!sample) return;
    const auto [from, number] = samples_.at(*sample);
    kernel_.will_need(from.sample(number), sample_bytes_);
  }
}

void PageCachePrefetcher::after(const PlannedBatch& batch) {
  is_first_ = false;
  asked_ -= std::min(asked_, batch.range.size());
  if (cold_left_ == 0 && ++batches_ < kLookEvery) return;
  batches_ = 0;
  const uint64_t before = std::exchange(disk_reads_, kernel_.disk_reads());
  if (disk_reads_ > before)
    cold_left_ = kColdBatches;
  else if (cold_left_ > 0 && --cold_left_ == 0)
    asking_.reset();
}

}  // namespace lockstep::data
