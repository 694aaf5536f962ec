#include "worker/process/gpu_identity.h"

#include "comm/base/gpu/gpu_driver.h"

namespace lockstep {

std::optional<wire::GpuIdentity> identity_of_gpu(uint32_t index) {
  const Result<GpuIdentity> found = identify_gpu(index);
  if (!found.is_ok()) return std::nullopt;
  wire::GpuIdentity gpu;
  gpu.set_pci(found->pci);
  gpu.set_uuid(found->uuid);
  return gpu;
}

}  // namespace lockstep
