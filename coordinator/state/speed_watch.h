// Watches how fast each member computes, from the phase times in its records. Part of State.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <map>

#include "comm/base/ids.h"
#include "coordinator/state/check_state.h"

namespace lockstep::coordinator {

// The times of one member in the present window, for steps in which it had a slot.
struct MemberPace {
  uint64_t steps = 0;
  uint64_t slots = 0;    // computed, over those steps
  uint64_t busy_us = 0;  // waiting for data, forward, backward: the part that grows with slots
};

struct SpeedWatch {
  Generation generation = 0;  // in which the window began; a new generation begins a new window
  int64_t since_ms = 0;
  std::map<MemberId, MemberPace> paces;
  std::map<MemberId, double> cost_us;  // of a slot, in the last whole window
  uint32_t agreeing = 0;               // windows in a row that asked for the same change
  std::map<Place, uint32_t> slow;      // windows in a row in which the worker there was an outlier
};

}  // namespace lockstep::coordinator
