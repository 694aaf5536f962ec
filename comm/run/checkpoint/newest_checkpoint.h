// Finds the newest checkpoint of a run that may be going on: the run writes newer ones, and deletes
// older ones, meanwhile.
//
// Thread-safety: a free function without state.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/run/checkpoint/store.h"

namespace lockstep {

// Below `dir`, verified. kNoInput if there is none yet; kBadData if it is damaged.
Result<CheckpointInfo> newest_checkpoint(const std::string& dir);

}  // namespace lockstep
