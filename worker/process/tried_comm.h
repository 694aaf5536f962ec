// The devices' connection where comm.backend is auto: NCCL if a trial shows that it sums, else none
// (comm/collectives/device_trial.h).
//
// INVARIANTS
//  C1 Where the host sums, nothing of NCCL stays on the device: a thread of its own ends the
//     connection, and then the memory for sums is given back. A library that does not end keeps
//     both, and delays nothing but the destructor (D2).
//  C2 The memory for sums is not given back before the connection has ended.
//
// Thread-safety: as DeviceComm.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/base/clock.h"
#include "comm/base/gpu/gpu_driver.h"
#include "worker/cuda/device_module.h"

namespace lockstep {

struct TriedCommParts {
  DeviceModule* module = nullptr;  // these two outlive the connection
  const Clock* clock = nullptr;
  // The device's memory for sums (Engine::device_buffer(), drop_device_buffer()).
  std::function<Result<GradientBuffer*>()> reserve;
  std::function<void()> release;
  DeviceCommOptions options;
  GpuIdentity gpu;              // this worker's; empty: unknown
  std::string notes_directory;  // of the run (trial_note.h)
  // Called with the result of the trial. Usually on the thread of connect(), once on one of the
  // connection's.
  std::function<void(const std::string&)> note;
};

// Opens the connection's library too; if that fails, the first generation hears of it.
std::unique_ptr<DeviceComm> make_tried_comm(TriedCommParts parts);

}  // namespace lockstep
