// Checks a resume before it changes anything. It refuses what the coordinator would refuse, so that
// a mistake leaves the run as it was.
//
// Thread-safety: free functions.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"
#include "coordinator/term/best.h"

namespace lockstep {

struct ResumeCheck {
  bool is_done = false;  // the run ended well, with as many steps as the job asks for
};

// kUsage for another identity than the run's, for fewer steps than it has done, and if a
// coordinator works in `run_dir`. Other errors as coordinator::check_resume().
Result<ResumeCheck> check_resume(const std::string& run_dir, const wire::JobSpec& job,
                                 const wire::DataFacts& facts);

// Rebuilds the journal from a checkpoint (coordinator/term/rebuild.h).
Status rebuild_from(const std::string& run_dir, const std::string& checkpoint,
                    const wire::JobSpec& job, const wire::DataFacts& facts);

// The value of --from-checkpoint for the best checkpoint.
inline constexpr char kBestCheckpoint[] = "best";

// Goes back to the best checkpoint (coordinator/term/best.h).
Result<coordinator::WayBack> go_back_to_best(const std::string& run_dir, const wire::JobSpec& job);

// The job of the run in `run_dir`: from job.pb, or if that is lost from the journal. kNoInput if
// neither knows it.
Result<wire::JobSpec> stored_job(const std::string& run_dir);

}  // namespace lockstep
