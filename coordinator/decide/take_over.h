// The part of begin_state() for a journal with a generation that was started and not closed. Only
// begin_state.cc uses it.
//
// Thread-safety: pure.
#pragma once

#include "coordinator/state/state.h"

namespace lockstep::coordinator {

// REQUIRES: beginning.living.
void take_over(const Beginning& beginning, int64_t now_ms, State& state);

}  // namespace lockstep::coordinator
