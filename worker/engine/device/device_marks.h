// Who uses which mark of a DeviceModule in the engine.
//
// Thread-safety: constants.
#pragma once

#include <cstdint>

#include "worker/cuda/device_module.h"

namespace lockstep {

inline constexpr uint32_t kRecordedMarks = 256;

enum DeviceMark : uint32_t {
  kInputsSent = 0,    // of two stages
  kInputsUsed = 2,    // likewise
  kLossThere = 4,     // on kCompute
  kBackwardReached,   // on kCompute
  kGradientsReached,  // on kGradients
  kFinished,
  kFirstRecorded,  // kRecordedMarks of them, on kCompute, in slots that are graphs
  kFirstTicket = kFirstRecorded + kRecordedMarks,  // the rest, on kGradients
};

}  // namespace lockstep
