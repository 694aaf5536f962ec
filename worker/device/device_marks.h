// The marks of a DeviceModule, by the part of the engine that uses them.
//
// Thread-safety: constants.
#pragma once

#include <cstdint>

#include "worker/cuda/device_module.h"

namespace lockstep {

inline constexpr uint32_t kRecordedMarks = 256;

enum DeviceMark : uint32_t {
  kInputsSent = 0,    // two, one a stage
  kInputsUsed = 2,    // two, one a stage
  kLossThere = 4,     // on kCompute
  kBackwardReached,   // on kCompute
  kGradientsReached,  // on kGradients
  kFinished,
  kPieceThere,                       // two, on kCompute (device_reader.h)
  kFirstRecorded = kPieceThere + 2,  // kRecordedMarks marks on kCompute, in slots that are graphs
  kFirstTicket = kFirstRecorded + kRecordedMarks,  // all remaining marks, on kGradients
};

}  // namespace lockstep
