// Reads model.init before the run begins, so that weights that do not fit end it at once.
//
// Thread-safety: a free function.
#pragma once

#include <string>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "worker/engine/engine.h"

namespace lockstep {

// Does nothing without model.init, or in a run that has checkpoints: its workers get their state
// from there or from each other. Else logs the weights that it read, and writes
// logs/model-init.txt, a line a tensor. Errors of Engine::start_afresh().
Status read_weights(const wire::JobSpec& job, const std::string& run_dir, Engine& engine,
                    Logger& logger);

}  // namespace lockstep
