// Whether a resume still means the run that is there. The check is the coordinator's own
// (coordinator/state/identity.h), which makes it against its journal; made here too, it comes
// before any process is started.
//
// Thread-safety: pure functions.
#pragma once

#include "comm/base/status.h"
#include "comm/wire/control.pb.h"
#include "comm/wire/job.pb.h"

namespace lockstep {

// kUsage with both values where `wanted` differs from `stored` in what identifies a run.
Status check_same_run(const wire::JobSpec& stored, const wire::JobSpec& wanted);

// kUsage when the data are not those that the run was started with.
Status check_same_data(const wire::DataFacts& stored, const wire::DataFacts& found);

}  // namespace lockstep
