// Opens the library of a device's module (worker/cuda/module_entry.h) at run time.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "worker/cuda/device_module.h"

namespace lockstep {

// The module in the library at `path`, on device `local_rank` modulo those that can be seen.
// kConfig, with the reason, if the library cannot be loaded, is of another build, or finds no
// device. The library stays loaded.
Result<std::unique_ptr<DeviceModule>> load_device_module(const std::string& path,
                                                         uint32_t local_rank);

}  // namespace lockstep
