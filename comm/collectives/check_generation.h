// What every backend asks of an operation's tag before it looks at anything else.
//
// Thread-safety: a pure function.
#pragma once

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/collective.h"

namespace lockstep {

// kInternal where `tag` is of another generation than the Collective's own: a caller held on to one
// that is over (C4).
Status check_generation(const Tag& tag, Generation own);

}  // namespace lockstep
