// The state in which decide() begins a term: from what the journal says.
//
// Thread-safety: pure.
#pragma once

#include <cstdint>

#include "coordinator/state/state.h"

namespace lockstep::coordinator {

// `experience`: what the terms before it in this process learned of the members.
State begin_state(const Beginning& beginning, int64_t now_ms, Experience experience = {});

}  // namespace lockstep::coordinator
