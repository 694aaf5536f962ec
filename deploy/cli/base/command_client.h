// Sends one command to the coordinator of a live run and returns its answer (wire::Command).
//
// Thread-safety: free functions; send_command() blocks for at most its timeout.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

// Finds the coordinator through coordinator.json and proves the run's token. Waits for a
// coordinator that is being started again. The command does not outlive the call: without an
// answer, look at the status of the run before sending the command again. kNoInput if `run_dir`
// holds no run; kUnavailable if no coordinator answers.
Result<wire::CommandAnswer> send_command(const std::string& run_dir, const wire::Command& command,
                                         int64_t timeout_ms);

}  // namespace lockstep
