// Asks NVIDIA's driver for GPUs, without linking anything of CUDA.
//
// Thread-safety: any thread. The driver stays loaded after the first call.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

// The number of GPUs, at least one. kConfig if there is none, with the driver's words.
Result<uint32_t> count_gpus();

// The ids that tell one GPU from another. Two slices of one GPU (MIG) have the same bus and
// different UUIDs.
struct GpuIdentity {
  std::string pci;        // "0000:3b:00.0", on its machine
  std::string uuid;       // 32 hex digits, anywhere
  bool is_slice = false;  // of a GPU (MIG)
};

// Identifies the visible GPU of number `index` modulo the number of visible GPUs. kConfig as
// count_gpus().
Result<GpuIdentity> identify_gpu(uint32_t index);

// The number of the visible GPU with this UUID (GpuIdentity). kConfig, with the UUID, if none has
// it: a GPU that fell off the bus is gone, and the others have moved up.
Result<uint32_t> find_gpu(const std::string& uuid);

// These ask the driver library of this name; for tests.
Result<uint32_t> count_gpus(const char* driver_library);
Result<GpuIdentity> identify_gpu(uint32_t index, const char* driver_library);
Result<uint32_t> find_gpu(const std::string& uuid, const char* driver_library);

}  // namespace lockstep
