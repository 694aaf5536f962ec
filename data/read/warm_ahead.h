// Samples that are used where they are mapped, asked for ahead of their use while they are not in
// memory (MADV_WILLNEED).
//
//   first batch: its own samples are asked for ──▶ warm, or cold where the disk was read
//   warm: a look every few batches at what this thread had the disk do ──▶ it was read ──▶ cold
//   cold: before every batch the next ones are asked for ──▶ the disk was not read in so many
//   batches ──▶ warm
//
// While all is in memory this costs one system call in kLookEvery batches, and nothing a sample.
//
// Thread-safety: the thread that reads the samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "data/dataset/dataset.h"
#include "data/read/batch_sequence.h"

namespace lockstep::data {

class WarmAhead {
 public:
  static constexpr uint32_t kLookEvery = 8;      // batches, while all seems to be in memory
  static constexpr uint32_t kColdBatches = 256;  // asked for ahead after the last that was cold

  // What the kernel is asked; others for tests.
  struct Kernel {
    // Of this thread so far, whatever they count: more only when it had the disk read something.
    std::function<uint64_t()> disk_reads;
    std::function<void(const uint8_t* begin, uint64_t bytes)> will_need;
  };
  static Kernel kernel();

  // `dataset` outlives it. REQUIRES: its samples are mapped.
  WarmAhead(const Dataset& dataset, BatchSequenceOptions sequence, uint64_t ahead_bytes,
            Kernel asked = kernel());

  // Around every batch.
  void before(const PlannedBatch& batch);
  void after(const PlannedBatch& batch);

 private:
  const Dataset& dataset_;
  const BatchSequenceOptions options_;
  const uint64_t sample_bytes_;
  const uint64_t ahead_samples_;
  const Kernel kernel_;

  bool is_first_ = true;
  uint32_t batches_ = 0;                  // since the last look
  uint64_t disk_reads_ = 0;               // at it
  uint32_t cold_left_ = 1;                // batches; 0: warm
  std::optional<SampleSequence> asking_;  // while cold: goes ahead of the batches
  uint64_t asked_ = 0;                    // samples that it is ahead
};

}  // namespace lockstep::data
