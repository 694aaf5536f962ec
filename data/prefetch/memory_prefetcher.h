// Reads samples into memory ahead of their use (sample_buffer.h): always, or only while they come
// from a disk. Reading a sample in memory when it is used costs less than copying it ahead.
//
//   kFromDisk: read on use ──▶ a batch waited for the disk (disk_watch.h) ──▶ read ahead
//                  ▲                                                              │
//                  └──────────── nothing came from the disk for long ◀────────────┘
//
// Thread-safety: as Prefetcher.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/run/plan/batch_sequence.h"
#include "data/prefetch/disk_watch.h"
#include "data/prefetch/prefetcher.h"

namespace lockstep::data {

class Dataset;
class PrefetchPolicy;

class MemoryPrefetcher final : public Prefetcher {
 public:
  enum class When { kAlways, kFromDisk };

  // `dataset` and `policy` outlive it. Errors as SampleBuffer::start(). REQUIRES: the first sample
  // has an extent.
  static Result<std::unique_ptr<MemoryPrefetcher>> start(const Dataset& dataset,
                                                         BatchSequenceOptions sequence,
                                                         PrefetchPolicy& policy, When when);
  ~MemoryPrefetcher() override;

  void before(const PlannedBatch& batch) override;
  void after(const PlannedBatch& batch) override;
  BufferedBatch buffered() const override { return {buffer_.get(), first_}; }
  void stop() override;

 private:
  MemoryPrefetcher(const Dataset& dataset, BatchSequenceOptions sequence, PrefetchPolicy& policy);

  Status read_ahead_from(Step step, uint32_t slot);
  void read_on_use();

  const Dataset& dataset_;
  const BatchSequenceOptions options_;
  PrefetchPolicy& policy_;

  std::optional<DiskWatch> watch_;  // nothing: always, or not any more
  uint64_t first_ = 0;

  std::mutex mutex_;  // over what stop() meets
  bool is_stopped_ = false;
  std::unique_ptr<SampleBuffer> buffer_;  // null: read on use
};

}  // namespace lockstep::data
