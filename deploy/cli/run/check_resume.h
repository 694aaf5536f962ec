// Whether a run can be resumed as asked, before anything of it is touched: what the coordinator
// would refuse is refused here, so that a mistake leaves the run as it was.
//
// Thread-safety: free functions.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/wire/control.pb.h"
#include "comm/wire/job.pb.h"

namespace lockstep {

struct ResumeCheck {
  bool is_done = false;  // it has ended well, with as many steps as are asked for
};

// kUsage for another identity than the run's, for a length that it has passed already, and when a
// coordinator works in `run_dir`; else as coordinator::check_resume().
Result<ResumeCheck> check_resume(const std::string& run_dir, const wire::JobSpec& job,
                                 const wire::DataFacts& facts);

}  // namespace lockstep
