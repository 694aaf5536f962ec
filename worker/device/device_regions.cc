#include "worker/device/device_regions.h"

#include <utility>

#include "comm/base/check.h"
#include "worker/device/device_memory.h"

namespace lockstep {

DeviceRegions::DeviceRegions(DeviceModule& module, const BufferLayout& layout)
    : module_(module), layout_{layout.gradients, layout.statistics, layout.statistics} {}

Status DeviceRegions::reserve(uint32_t regions) {
  while (regions_.size() < regions) {
    float* region = nullptr;
    LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &region, layout_.elements));
    regions_.push_back(region);
  }
  return Status::ok();
}

Status DeviceRegions::reserve_result(bool for_peers) {
  if (result_ != nullptr) return Status::ok();
  const size_t bytes = layout_.elements * sizeof(float);
  LOCKSTEP_ASSIGN_OR_RETURN(
      void* const got, for_peers ? module_.allocate_for_peers(bytes) : module_.allocate(bytes));
  result_ = static_cast<float*>(got);
  return Status::ok();
}

void DeviceRegions::drop() {
  for (; regions_.size() > 1; regions_.pop_back()) module_.release(regions_.back());
  module_.release(std::exchange(result_, nullptr));
}

float* DeviceRegions::partial(uint32_t region) {
  LOCKSTEP_CHECK(region < regions_.size(), "no such region");
  return region == 0 && lent_ != nullptr ? lent_ : regions_[region];
}

float* DeviceRegions::result() {
  LOCKSTEP_CHECK(result_ != nullptr, "no memory for sums was asked for");
  return result_;
}

}  // namespace lockstep
