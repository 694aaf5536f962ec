// Makes this process one that computes on a GPU: LibTorch's CUDA library, our module beside the
// program, and the settings that numerics ask for. Nothing of it is linked, so that the same worker
// starts where there is no driver.
//
// Thread-safety: once in a process, before any other call of LibTorch: it remembers for good what
// it found when it was first asked.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "worker/cuda/device_module.h"
#include "worker/engine/core/memory_meter.h"

namespace lockstep {

// The module in the library at `path`, on GPU `local_rank` modulo those that can be seen. kConfig,
// with what to do, where there is no driver, no GPU, a LibTorch without CUDA, or a Lockstep built
// without its GPU module.
Result<std::unique_ptr<DeviceModule>> open_gpu(const wire::JobSpec& job, const std::string& path,
                                               uint32_t local_rank);

// Where the module lies that was built with this program: beside it.
std::string device_module_path();

// The last part of open_gpu(): another module in the same process.
Result<std::unique_ptr<DeviceModule>> open_device_module(const std::string& path,
                                                         uint32_t local_rank);

// The memory in which a worker computes: the module's device's, or without one the machine's. The
// workers on this node that have the same one take equal shares.
Result<std::unique_ptr<MemoryMeter>> make_meter(const DeviceModule* module, uint32_t workers_here);

// The most memory of the device that was in use at a time: ours, which stays, and that of
// LibTorch's tensors.
Result<uint64_t> peak_device_bytes(const DeviceModule& module);

}  // namespace lockstep
