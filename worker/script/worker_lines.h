// The text in LOCKSTEP_WORKER with which an agent tells a script's process which worker it is.
//
// Lines "key=value": run_dir, local_rank, gpu, gpu_uuid, log_name, workers_here, node, process,
// in_hand_fd; as lockstep-worker has options. Unknown keys are left out, so that an older module
// works with a newer agent.
//
// Thread-safety: a pure function.
#pragma once

#include <string_view>

#include "comm/base/status.h"
#include "worker/process/worker.h"

namespace lockstep {

// kUsage, naming the line, for any other text, and without a run_dir.
Result<WorkerOptions> parse_worker_lines(std::string_view text);

}  // namespace lockstep
