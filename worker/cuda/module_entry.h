// The entry of liblockstep-cuda.so, the DeviceModule on CUDA. The worker opens the library at run
// time and looks the entry up by name; nothing links it.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "worker/cuda/device_module.h"

namespace lockstep {

// Grows with every change of DeviceModule or of what it takes: a worker and a library that were not
// built together must not meet.
inline constexpr uint32_t kDeviceModuleVersion = 5;

inline constexpr char kDeviceModuleLibrary[] = "liblockstep-cuda.so";
inline constexpr char kDeviceModuleEntry[] = "lockstep_open_device_module";

// What the entry gives: a module, or the reason why there is none. The caller owns both.
struct OpenedModule {
  uint32_t version = kDeviceModuleVersion;
  DeviceModule* module = nullptr;
  Status* error = nullptr;
};

// The device of this worker: its number on the node modulo the devices that can be seen.
using OpenDeviceModule = OpenedModule (*)(uint32_t local_rank);

}  // namespace lockstep
