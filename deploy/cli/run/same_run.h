// Checks that a resume means the run in the directory. The coordinator makes the same check
// (coordinator/state/identity.h) against its journal; here it comes before any process starts.
//
// Thread-safety: pure functions.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

// kUsage, with both values, for each key that identifies the run and differs.
Status check_same_run(const wire::JobSpec& stored, const wire::JobSpec& wanted);

// kUsage if the run began with other data.
Status check_same_data(const wire::DataFacts& stored, const wire::DataFacts& found);

}  // namespace lockstep
