// The entry of liblockstep-cuda.so, the DeviceModule on CUDA. The worker opens the library at run
// time and finds the entry by name. Nothing links the library.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "worker/cuda/device_module.h"

namespace lockstep {

// Increase this with every change of DeviceModule, of the types in its calls, or of the memory that
// its kernels expect (column_sums.h). A worker and a library from different builds must not meet.
inline constexpr uint32_t kDeviceModuleVersion = 13;

inline constexpr char kDeviceModuleLibrary[] = "liblockstep-cuda.so";
inline constexpr char kDeviceModuleEntry[] = "lockstep_open_device_module";

// The result of the entry: a module, or the reason why there is no module. The caller owns both. A
// plain C struct, as the entry has a C name.
struct OpenedModule {
  uint32_t version;  // kDeviceModuleVersion
  DeviceModule* module;
  Status* error;
};

// Opens the device of this worker: `local_rank` modulo the number of visible devices.
using OpenDeviceModule = OpenedModule (*)(uint32_t local_rank);

}  // namespace lockstep
