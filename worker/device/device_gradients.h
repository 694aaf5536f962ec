// Gradients on their way from where backward wrote them, in the device's memory, to where they are
// summed: regions of the host (GradientTransfer), or regions of the device (DeviceSums). All of
// this work runs on kGradients. It runs after the point that kCompute had reached at the time of
// the request, so buckets move while backward goes on.
//
//   eager    backward ─▶ region 0 ─▶ host          backward ─▶ region, sums there
//   a graph  backward ─▶ its own place ─▶ host     backward ─▶ its own place ─▶ region, sums there
//
// In a step in which the rank computes one slot, the graph's place is region 0, as nothing else is
// in it: then a graph writes the region, as eager slots do, and nothing is copied.
//
// A training loop in Python writes on streams of its own (writes_on()): requests of the slot then
// wait for all of these streams, too.
//
// A graph is enqueued at once, and kCompute then ends after the whole graph. So for a graph the
// marks inside it tell how far backward is (reached()).
//
// INVARIANTS
//  A1 If gradients go over the host, region 0 (or the graph's place) holds the slot's gradients
//     until the caller has waited for their transfers.
//  A2 A slot writes nothing before all requests of the previous slot have run, whatever became of
//     the previous slot's step.
//
// Thread-safety: as GradientTransfer and DeviceSums. All other calls: the training thread.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "worker/cuda/device_module.h"
#include "worker/device/bucket_counter.h"
#include "worker/device/device_regions.h"
#include "worker/engine/device_sums.h"
#include "worker/engine/flat_layout.h"
#include "worker/engine/gradient_transfer.h"

namespace lockstep {

class DeviceGradients final : public GradientTransfer, public DeviceSums {
 public:
  // `module` and `layout` outlive the object.
  DeviceGradients(DeviceModule& module, const FlatLayout& layout);
  ~DeviceGradients() override;

  DeviceRegions& regions() { return regions_; }  // the owner reserves at least one
  // Pins the whole region of the host that begins at `memory`. It stays pinned until the end.
  void pin(const float* memory);

  // Begins the next slot. The slot is eager until from_graph().
  Status begin_slot();
  // Begins one that goes nowhere, in memory that no request uses: it waits for none, as sums of
  // this step may be on their way, and peers with them.
  void begin_private_slot();
  // A graph computes this slot into `place`, which has the layout of a region.
  void from_graph(float* place) { place_ = graph_place_ = place; }
  // Transfers and sums from here on wait for this mark; none: for what kCompute has reached at the
  // request.
  void reached(std::optional<uint32_t> mark) { reached_ = mark; }
  // The slot writes on this stream, too (device_module.h), from now on. Call it before the first
  // write, and on the thread that calls start().
  Status writes_on(void* stream);
  // Delays later work of `lane` until all that the slot's streams hold now is done.
  Status follow_streams(DeviceLane lane);

  void start(float* region, const ElementRange& range, uint32_t ticket) override;
  Status wait(uint32_t ticket) override;

  float* partial(uint32_t region) override { return regions_.partial(region); }
  Status bring(uint32_t region, const ElementRange& range) override;
  Status merge(const RegionMerge& merge, const ElementRange& range) override;
  Status finish() override;
  void begin_step(uint32_t slots) override;
  Status count(uint32_t buckets) override { return counter_.count(buckets); }
  void has_seen(uint32_t buckets) override { counter_.set(buckets); }
  // The owner reserves it before it counts.
  BucketCounter& counter() { return counter_; }
  const BucketCounter& counter() const { return counter_; }

 private:
  Status try_start(float* region, const ElementRange& range, uint32_t mark);
  Status follow_backward();

  DeviceModule& module_;
  const FlatLayout& layout_;
  DeviceRegions regions_;
  BucketCounter counter_;
  const float* place_ = nullptr;  // of the graph that computes this slot; null: eager
  float* graph_place_ = nullptr;  // of all graphs; null: there is none yet
  std::optional<uint32_t> reached_;
  std::vector<void*> streams_;  // that this slot writes on
  std::set<const float*> pinned_;
  std::mutex error_mutex_;
  Status transfer_error_;  // of start()
};

}  // namespace lockstep
