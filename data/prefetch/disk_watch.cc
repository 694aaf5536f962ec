#include "data/prefetch/disk_watch.h"

#include <sys/resource.h>

#include <utility>

namespace lockstep::data {
namespace {

constexpr uint64_t kBlocksAPage = 8;

}  // namespace

uint64_t DiskWatch::blocks_read() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_inblock);
}

void DiskWatch::before() {
  // Reading ahead goes on between batches, too.
  if (!is_from_disk_) seen_ = blocks_();
}

void DiskWatch::after(uint64_t samples) {
  const uint64_t seen = blocks_();
  blocks_read_ += seen - std::exchange(seen_, seen);
  samples_ += samples;
  if (++batches_ >= kLookEvery) look();
}

void DiskWatch::look() {
  if (is_from_disk_) {
    warm_batches_ = blocks_read_ == 0 ? warm_batches_ + batches_ : 0;
    is_from_disk_ = warm_batches_ < kWarmBatches;
  } else {
    is_from_disk_ = blocks_read_ > 0 && blocks_read_ / kBlocksAPage >= samples_ / kSamplesAPage;
    warm_batches_ = 0;
  }
  batches_ = 0;
  blocks_read_ = 0;
  samples_ = 0;
}

}  // namespace lockstep::data
