// Places where the simulator can plant a bug, to prove that it finds it: a one-line switch in the
// code itself, `if (LOCKSTEP_BUG(kAckBeforeCommit))`. The list is tests/sim/bugs.h. Only the second
// build of the sources inside tests/sim defines LOCKSTEP_PLANTED_BUGS; everywhere else the macro is
// the constant false and nothing of it reaches a program.
//
// Thread-safety: a macro.
#pragma once

#ifdef LOCKSTEP_PLANTED_BUGS
#include "tests/sim/bugs.h"
#define LOCKSTEP_BUG(name) ::lockstep::sim::is_planted(::lockstep::sim::Bug::name)
#else
#define LOCKSTEP_BUG(name) false
#endif
