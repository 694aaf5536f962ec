// The steps of a script's run that its process computes again. `lockstep replay` resolves them, and
// the process only carries them out (worker/script/script_replay.h).
//
// Errors: kConfig if checkpoints cannot be read at all, else as ReplaySource.
//
// Thread-safety: one thread.
#pragma once

#include "comm/base/status.h"
#include "comm/wire/replay.pb.h"
#include "worker/replay/source.h"

namespace lockstep {

// From the newest whole checkpoint before source.step(), or the initial weights, to that step.
Result<wire::ReplayPlan> make_script_plan(ReplaySource& source);

}  // namespace lockstep
