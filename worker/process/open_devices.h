// Opens the connection of a worker's GPU to the GPUs of its peers, as comm.backend says.
//
// Thread-safety: the training thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/base/clock.h"
#include "comm/base/gpu/gpu_driver.h"
#include "comm/base/log.h"
#include "comm/run/job/job.pb.h"
#include "worker/cuda/device_module.h"
#include "worker/engine/engine.h"

namespace lockstep {

// All references outlive the connection.
struct DevicesWanted {
  const wire::JobSpec& job;
  DeviceModule& module;
  Engine& engine;
  const Clock& clock;
  Logger& logger;
  uint32_t gpu = 0;                             // its number, modulo those that can be seen
  std::string notes_directory;                  // of the run (trial_note.h)
  std::function<void(const Status&)> on_stuck;  // DeviceCommOptions
};

// kConfig for a MIG slice, between which NCCL does not sum.
Status check_whole_gpu(const GpuIdentity& gpu);

// Null: the host sums. Errors: from check_whole_gpu() and
// DeviceModule::open_comm(), with comm.backend nccl only.
Result<std::unique_ptr<DeviceComm>> open_devices(const DevicesWanted& wanted);

}  // namespace lockstep
