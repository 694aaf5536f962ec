// Typed memory of a DeviceModule.
//
// Thread-safety: as DeviceModule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "worker/cuda/device_module.h"

namespace lockstep {

// `count` of 0 gets memory too, at an address of its own.
template <typename T>
Status allocate(DeviceModule& module, T** memory, size_t count) {
  LOCKSTEP_ASSIGN_OR_RETURN(void* got, module.allocate(std::max<size_t>(count, 1) * sizeof(T)));
  *memory = static_cast<T*>(got);
  return Status::ok();
}

template <typename T>
Status allocate_host(DeviceModule& module, T** memory, size_t count) {
  LOCKSTEP_ASSIGN_OR_RETURN(void* got,
                            module.allocate_host(std::max<size_t>(count, 1) * sizeof(T)));
  *memory = static_cast<T*>(got);
  return Status::ok();
}

// Uploads a table that stays on the device. The copy runs in kCompute; the caller keeps `table`
// until the copy is done.
template <typename T>
Status upload_table(DeviceModule& module, const std::vector<T>& table, const T** memory) {
  T* on_device = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(allocate(module, &on_device, table.size()));
  *memory = on_device;
  return module.copy(DeviceLane::kCompute, on_device, table.data(), table.size() * sizeof(T));
}

}  // namespace lockstep
