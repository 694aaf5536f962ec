// One command to the coordinator of a live run, and its answer (wire::Command).
//
// Thread-safety: free functions; send_command() blocks for at most its timeout.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

// Finds the coordinator through coordinator.json and proves the run's token; one that is being
// started again is waited for. What is said does not outlive the call: whoever gets no answer must
// look at the status of the run before saying it again.
// kNoInput when `run_dir` is of no run; kUnavailable when no coordinator answers.
Result<wire::CommandAnswer> send_command(const std::string& run_dir, const wire::Command& command,
                                         int64_t timeout_ms);

}  // namespace lockstep
