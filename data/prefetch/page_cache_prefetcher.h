// Tells the kernel which samples come next (MADV_WILLNEED), if samples are used in their mapping
// and do not lie in memory.
//
//   first batch: asked for as it begins ──▶ warm, or cold if the disk was read
//   warm: every few batches a look at what this thread had the disk do ──▶ it read ──▶ cold
//   cold: before every batch the next samples are asked for ──▶ no disk read for many batches
//         ──▶ warm
//
// While all samples are in memory, this costs one system call in kLookEvery batches, and nothing a
// sample.
//
// Thread-safety: as Prefetcher.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "comm/run/plan/batch_sequence.h"
#include "data/dataset/dataset.h"
#include "data/prefetch/prefetcher.h"

namespace lockstep::data {

class PageCachePrefetcher final : public Prefetcher {
 public:
  static constexpr uint32_t kLookEvery = 8;      // batches, while all seems to be in memory
  static constexpr uint32_t kColdBatches = 256;  // asked for ahead after the last that was cold

  // The calls to the kernel. Tests bring others.
  struct Kernel {
    // Reads of this thread so far, in any unit. The count grows only when the thread makes the disk
    // read something.
    std::function<uint64_t()> disk_reads;
    std::function<void(const uint8_t* begin, uint64_t bytes)> will_need;
  };
  static Kernel kernel();

  // REQUIRES: the samples are mapped.
  PageCachePrefetcher(As<StoredSamples> samples, BatchSequenceOptions sequence,
                      uint64_t ahead_bytes, Kernel asked = kernel());

  void before(const PlannedBatch& batch) override;
  void after(const PlannedBatch& batch) override;

 private:
  const As<StoredSamples> samples_;
  const BatchSequenceOptions options_;
  const uint64_t sample_bytes_;
  const uint64_t ahead_samples_;
  const Kernel kernel_;

  bool is_first_ = true;
  uint32_t batches_ = 0;                  // since the last look
  uint64_t disk_reads_ = 0;               // at the last look
  uint32_t cold_left_ = 1;                // batches; 0: warm
  std::optional<SampleSequence> asking_;  // while cold: goes ahead of the batches
  uint64_t asked_ = 0;                    // samples that it is ahead
};

}  // namespace lockstep::data
