// Makes the state in which decide() begins a term, from the journal.
//
// Thread-safety: pure.
#pragma once

#include <cstdint>

#include "coordinator/state/state.h"

namespace lockstep::coordinator {

// `experience`: what earlier terms of this process learned about the members.
State begin_state(const Beginning& beginning, int64_t now_ms, Experience experience = {});

}  // namespace lockstep::coordinator
