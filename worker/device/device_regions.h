// Regions of gradients in a device's memory, for partial sums and their results. It is a
// GradientBuffer that grows. Its control section is empty, because the hosts sum the control
// section themselves.
//
// Thread-safety: one thread at a time.
#pragma once

#include <vector>

#include "comm/base/status.h"
#include "comm/collectives/collective.h"
#include "worker/cuda/device_module.h"

namespace lockstep {

class DeviceRegions final : public GradientBuffer {
 public:
  // `module` outlives the regions, and keeps their memory. `layout`: the layout of the host's
  // buffer.
  DeviceRegions(DeviceModule& module, const BufferLayout& layout);

  // Reserves at least `regions` regions, zeroed. Existing regions stay where they are. kNoMemory if
  // memory runs out.
  Status reserve(uint32_t regions);
  // `for_peers`: of the kind that peers may map (DeviceModule::allocate_for_peers), for sums in
  // windows. Sums that go by transfers need plain memory, as their other ends have.
  Status reserve_result(bool for_peers);
  // Gives back all but the first region. REQUIRES: nothing uses them.
  void drop();

  // Until the next call, region 0 lies in this memory of the caller's, of the size of a region;
  // null: in its own. Does not copy the region's content.
  void lay_first_at(float* memory) { lent_ = memory; }

  const BufferLayout& layout() const override { return layout_; }
  uint32_t regions() const override { return static_cast<uint32_t>(regions_.size()); }
  float* partial(uint32_t region) override;
  float* result() override;  // REQUIRES: reserve_result()

 private:
  DeviceModule& module_;
  const BufferLayout layout_;
  std::vector<float*> regions_;
  float* lent_ = nullptr;  // for region 0; null: it has its own
  float* result_ = nullptr;
};

}  // namespace lockstep
