// Gradients on their way from where backward wrote them, in the device's memory, to where they are
// summed: regions of the host (GradientTransfer), or of the device (DeviceSums). All of it runs on
// kGradients, behind what kCompute had reached when it was asked for; so buckets move while
// backward goes on.
//
//   eager    backward ─▶ region 0 ─▶ host          backward ─▶ region, sums there
//   a graph  backward ─▶ its own place ─▶ host     backward ─▶ its own place ─▶ region, sums there
//
// A graph is enqueued at once, so behind it kCompute has reached its end: there it is the marks
// inside that tell how far backward is (reached()).
//
// INVARIANTS
//  A1 On the way over the host, region 0 (or the graph's place) holds the slot's gradients until
//     their transfers are waited for.
//  A2 A slot writes nothing before all that was asked for of the slot before it has run, whatever
//     became of its step.
//
// Thread-safety: as GradientTransfer and DeviceSums; the rest: the training thread.
#pragma once

#include <mutex>
#include <optional>
#include <set>

#include "worker/cuda/device_module.h"
#include "worker/engine/core/device_sums.h"
#include "worker/engine/core/flat_layout.h"
#include "worker/engine/core/gradient_transfer.h"
#include "worker/engine/device/device_regions.h"

namespace lockstep {

class DeviceGradients final : public GradientTransfer, public DeviceSums {
 public:
  // Both outlive it.
  DeviceGradients(DeviceModule& module, const FlatLayout& layout);
  ~DeviceGradients() override;

  DeviceRegions& regions() { return regions_; }  // at least one is reserved by the owner
  // The whole region of the host that begins at `memory`; until the end.
  void pin(const float* memory);

  // The next slot; until from_graph() an eager one.
  Status begin_slot();
  // A graph computes it, into `place`: the layout of a region.
  void from_graph(const float* place) { place_ = place; }
  // What is started or brought from here on is there at this mark; none: now.
  void reached(std::optional<uint32_t> mark) { reached_ = mark; }

  void start(float* region, const ElementRange& range, uint32_t ticket) override;
  Status wait(uint32_t ticket) override;

  float* partial(uint32_t region) override { return regions_.partial(region); }
  Status bring(uint32_t region, const ElementRange& range) override;
  Status merge(const RegionMerge& merge, const ElementRange& range) override;
  Status finish() override;

 private:
  Status try_start(float* region, const ElementRange& range, uint32_t mark);
  Status follow_backward();

  DeviceModule& module_;
  const FlatLayout& layout_;
  DeviceRegions regions_;
  const float* place_ = nullptr;  // of the graph that computes this slot; null: none does
  std::optional<uint32_t> reached_;
  std::set<const float*> pinned_;
  std::mutex error_mutex_;
  Status transfer_error_;  // of start()
};

}  // namespace lockstep
