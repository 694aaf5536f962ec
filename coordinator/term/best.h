// Goes back to the best checkpoint of a run that has ended or was stopped (checkpoint.best).
//
// Thread-safety: one thread. REQUIRES: no process of the run lives.
#pragma once

#include <string>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep::coordinator {

struct WayBack {
  std::string checkpoint;  // its name
  Step lost = 0;           // not 0: the best evaluation, whose own checkpoint is not there
};

// Takes all that the run did after its best checkpoint out of the lineage, in one commit of the
// journal. A resume goes on from there. If the checkpoint of the best evaluation is not there,
// because its writer died, the run goes back to the newest before it, and comes to the same
// evaluation again. kUsage if the run keeps none, or none is evaluated yet. kBadData if the
// checkpoint or the journal is damaged; then nothing changes.
Result<WayBack> go_back_to_best(const std::string& run_dir, const wire::JobSpec& job);

}  // namespace lockstep::coordinator
