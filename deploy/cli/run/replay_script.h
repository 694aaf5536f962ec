// `lockstep replay` of a script's run: plans which steps are computed again, and lets the script's
// Python compute them.
//
// Errors: kUsage for a step that the run never did, kConfig without a Python that can run it, else
// the errors of ReplaySource.
//
// Thread-safety: the main thread.
#pragma once

#include <string>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep {

// `step` counts from 0. Returns the exit code of the script's process, which has told the rest.
Result<int> replay_script(const std::string& run_dir, Step step);

}  // namespace lockstep
