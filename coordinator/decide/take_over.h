// begin_state() of a term whose journal has a generation that was started and not closed.
// Not for others.
//
// Thread-safety: pure.
#pragma once

#include "coordinator/state/state.h"

namespace lockstep::coordinator {

// REQUIRES: beginning.living.
void take_over(const Beginning& beginning, int64_t now_ms, State& state);

}  // namespace lockstep::coordinator
