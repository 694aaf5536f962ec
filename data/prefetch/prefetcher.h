// Works ahead of the batch that the loader makes, so that the batch does not wait for a disk or a
// network. The order of samples is known to the end of the run (comm/run/plan/batch_sequence.h), so
// every prefetcher walks the same order as the loader, some samples ahead.
//
//   samples                              prefetcher               what it does ahead
//   in memory, or data.read_ahead_mb: 0  none                     nothing
//   used where they are mapped           page_cache_prefetcher.h  tells the kernel (MADV_WILLNEED)
//   read from files                      memory_prefetcher.h      reads them into memory
//   far away: a URL, a slow mount        far_prefetcher.h         has their source fetch them
//
// make_prefetcher.h chooses. A mixture may be far away in part; its far prefetcher goes on top of
// one of the others.
//
// The rest of this folder:
//   prefetch_policy.h  data.reader and data.read_ahead_mb, what they become on this machine, and
//                      what was read
//   sample_buffer.h    the thread and the ring of bytes of memory_prefetcher.h
//   disk_watch.h       whether samples come from a disk or from memory
// How bytes get from files: data/io/reader.h. From far away: data/source/far_files/remote_files.h.
//
// INVARIANT: no byte of a batch depends on the prefetcher.
//
// Thread-safety: stop() from any thread; the rest from the thread that makes the batches.
#pragma once

#include <cstdint>

#include "comm/run/plan/batch_sequence.h"

namespace lockstep::data {

class SampleBuffer;

// Where the bytes of a batch's samples are: sample i of the batch is number `first` + i of the
// buffer.
struct BufferedBatch {
  SampleBuffer* buffer = nullptr;  // null: the samples are read where Dataset says they lie
  uint64_t first = 0;
};

class Prefetcher {
 public:
  virtual ~Prefetcher() = default;

  // Around every batch. The loader takes all samples of the batch in between.
  virtual void before(const PlannedBatch& batch) = 0;
  virtual void after(const PlannedBatch& batch) = 0;

  // For the batch between before() and after().
  virtual BufferedBatch buffered() const { return {}; }

  // From here on, no thread waits for a sample.
  virtual void stop() {}
};

}  // namespace lockstep::data
