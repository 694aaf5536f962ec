// The coordinator as a process: one term after the other at the same addresses, with its secrets,
// HTTP server, pulse and signals. It ends with the run, or when another coordinator has the run.
//
// Thread-safety: the main thread, once in a process (signals).
#pragma once

#include "coordinator/term/seat.h"
#include "coordinator/term/term.h"

namespace lockstep::coordinator {

// Returns the exit code of the process: the run's, 75 if another coordinator has the run, or the
// code of the error for which it could not begin. It has printed the error by then.
// `last_words`: a descriptor of memory, or -1. If the code is not 0, the function writes the reason
// there for the process that started this one, because a full disk has no place for it.
int run_coordinator(SeatRequest request, BeginMode mode, int last_words = -1);

}  // namespace lockstep::coordinator
