// The devices' connection where comm.backend is auto: NCCL if a trial shows that it sums, else none
// (comm/collectives/device_trial.h).
//
// Thread-safety: as DeviceComm.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/base/clock.h"
#include "worker/cuda/device_module.h"

namespace lockstep {

struct TriedCommParts {
  DeviceModule* module = nullptr;    // these three outlive the connection
  GradientBuffer* buffer = nullptr;  // in the device's memory
  const Clock* clock = nullptr;
  bool is_exact = true;
  std::function<void(const std::string&)> note;  // what came of the trial
};

// Opens the connection's library too; if that fails, the first generation hears of it.
std::unique_ptr<DeviceComm> make_tried_comm(TriedCommParts parts);

}  // namespace lockstep
