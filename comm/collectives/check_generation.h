// The check of an operation's tag that every backend makes first.
//
// Thread-safety: a pure function.
#pragma once

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/collective.h"

namespace lockstep {

// kInternal if `tag` has another generation than the Collective: the caller kept a Collective that
// is over (C4).
Status check_generation(const Tag& tag, Generation own);

}  // namespace lockstep
