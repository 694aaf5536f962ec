// Places where the simulator can plant a bug, to prove that it finds it. A place is a one-line
// switch in the code: `if (LOCKSTEP_BUG(kAckBeforeCommit))`. tests/sim/bugs.h lists them. Only the
// second build of the sources, inside tests/sim, defines LOCKSTEP_PLANTED_BUGS. Everywhere else the
// macro is the constant false, and programs contain nothing of it.
//
// Thread-safety: a macro.
#pragma once

#ifdef LOCKSTEP_PLANTED_BUGS
#include "tests/sim/bugs.h"
#define LOCKSTEP_BUG(name) ::lockstep::sim::is_planted(::lockstep::sim::Bug::name)
#else
#define LOCKSTEP_BUG(name) false
#endif
