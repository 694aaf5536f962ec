// Makes this process compute on a GPU. It opens LibTorch's CUDA library and our module next to the
// program, and makes LibTorch's settings that numerics ask for. The worker links neither library,
// so the same worker starts on a machine without a driver.
//
// Thread-safety: call once in a process, before any other call of LibTorch. LibTorch looks for
// devices once and remembers the answer forever.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "worker/cuda/device_module.h"
#include "worker/engine/memory_meter.h"

namespace lockstep {

// Opens the module in the library at `path`, on GPU `local_rank` modulo the number of visible GPUs.
// kConfig, with what to do, if there is no driver, no GPU, a LibTorch without CUDA, or a Lockstep
// built without its GPU module. REQUIRES: prepare_gpu_environment() (gpu_environment.h).
Result<std::unique_ptr<DeviceModule>> open_gpu(const wire::JobSpec& job, const std::string& path,
                                               uint32_t local_rank);

// The path of the module that was built with this program: next to the program.
std::string device_module_path();

// The last part of open_gpu(): opens another module in the same process.
Result<std::unique_ptr<DeviceModule>> open_device_module(const std::string& path,
                                                         uint32_t local_rank);

// The memory in which a worker computes: the memory of the module's device, or without a module the
// memory of the machine. The workers on this node that share one memory take equal shares.
Result<std::unique_ptr<MemoryMeter>> make_meter(const DeviceModule* module, uint32_t workers_here);

// The most memory of the device in use at a time: our own memory, which stays, and the memory of
// LibTorch's tensors.
Result<uint64_t> peak_device_bytes(const DeviceModule& module);

}  // namespace lockstep
