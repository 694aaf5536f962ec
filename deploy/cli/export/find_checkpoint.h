// The checkpoint of a run that a user names: last, best (of checkpoint.best), or the step of one.
//
// Thread-safety: a free function; it blocks as RunSource does.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/run/checkpoint/store.h"

namespace lockstep {

// The values of the option --checkpoint, for help texts.
inline constexpr char kCheckpointHelp[] =
    "last, best (of checkpoint.best), or the step of one (default: last)";

// Verified, since a user of the weights has nothing to compare them with. kNoInput without a
// checkpoint; kBadData for a damaged one; kUsage if the step has none, or there is no best.
Result<CheckpointInfo> find_checkpoint(const std::string& run_dir, const std::string& word);

// Returns `error`, which a user of the checkpoint at `path` met. If the run has deleted the
// checkpoint meanwhile: kNoInput with that as the cause.
Status why_unusable(const Status& error, const std::string& path);

}  // namespace lockstep
