// The result of one measurement, printed as one JSON object.
#pragma once

#include <cstdint>

#include "comm/wire/control.pb.h"

namespace lockstep::bench {

struct TrainReport {
  uint64_t steps = 0;
  double seconds = 0;
  double loss = 0;          // of the last step
  wire::PhaseTimes phases;  // sums over the steps; of rank 0
};

}  // namespace lockstep::bench
