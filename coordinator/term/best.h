// Goes back to the best checkpoint of a run that has ended or was stopped (checkpoint.best).
//
// Thread-safety: one thread. REQUIRES: no process of the run lives.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"

namespace lockstep::coordinator {

// What the run did after its best checkpoint leaves the lineage, in one commit of the journal: a
// resume goes on from there. Returns the name of the checkpoint. kUsage if the run keeps none, or
// none is evaluated yet. kBadData if the checkpoint is damaged, or the journal; nothing changed.
Result<std::string> go_back_to_best(const std::string& run_dir, const wire::JobSpec& job);

}  // namespace lockstep::coordinator
