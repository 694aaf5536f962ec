// The coordinator as a process: one term after the other at the same addresses, its secrets, its
// HTTP, its pulse, and signals, until the run has ended or another coordinator has it.
//
// Thread-safety: the main thread, once in a process (signals).
#pragma once

#include "coordinator/term/seat.h"
#include "coordinator/term/term.h"

namespace lockstep::coordinator {

// Gives the exit code of the process: that of the run, 75 when another coordinator has the run, or
// why it could not begin, which it has said by then.
int run_coordinator(SeatRequest request, BeginMode mode);

}  // namespace lockstep::coordinator
