// Counts the buckets of the step in flight that the DEVICE has finished, for heartbeats. The host
// enqueues a whole step at once, so the host's progress does not show a kernel that never ends.
//
// After a bucket's partials the lane kGradients copies a constant from a table on the device to a
// word of pinned host memory. A copy needs no kernel of its own and keeps the order of the lane; a
// callback to the host would stop the lane for a thread of the driver.
// The lane is never recorded into a CUDA graph (slot_graphs.h), so no value is frozen. Reading the
// word calls nothing of the device: a heartbeat never waits for a lock that a stuck call holds.
//
// INVARIANTS
//  B1 A copy of a step that ended early never counts for a later step: each step has a word of its
//     own, out of kWords in turn.
//
// Thread-safety: finished() from any thread; all other calls as DeviceSums.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/base/status.h"
#include "worker/cuda/device_module.h"

namespace lockstep {

class BucketCounter {
 public:
  static constexpr uint32_t kWords = 16;
  // Buckets beyond are not told apart.
  static constexpr uint32_t kMostBuckets = 16'384;

  // `module` outlives the counter, and keeps its memory.
  explicit BucketCounter(DeviceModule& module) : module_(module) {}

  // The memory. Before any other call; further calls change nothing.
  Status reserve();

  // Nothing of the step is finished yet.
  void begin_step();
  // Enqueues: everything that kGradients has so far belongs to the first `buckets` buckets.
  Status count(uint32_t buckets);
  // The host has seen that so many are finished. Nothing of the step is in the lane any more.
  void set(uint32_t buckets);

  uint32_t finished() const;

 private:
  DeviceModule& module_;
  const uint32_t* table_ = nullptr;  // on the device: 0, 1, 2, ...
  uint32_t* words_ = nullptr;        // pinned; each 64 bytes from the next
  std::atomic<uint32_t*> word_{nullptr};
  uint32_t turn_ = 0;
};

}  // namespace lockstep
