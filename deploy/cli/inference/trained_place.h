// RUN|DIR of the commands that use a trained model: a run, whose checkpoint is found and verified
// here, or a directory of `lockstep export model`.
//
// Thread-safety: free functions of the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

struct TrainedPlace {
  std::string place;
  std::string checkpoint;  // as typed; empty: last
};

void add_trained_place(CLI::App& command, TrainedPlace& place);

// The options by which lockstep-worker finds it. kNoInput if there is no such directory; kUsage for
// --checkpoint with a directory that is no run; errors of find_checkpoint().
Result<std::vector<std::string>> worker_options(const TrainedPlace& place);

}  // namespace lockstep
