#include "deploy/cli/job/job_precision.h"

#include "comm/run/job/fp8_rule.h"
#include "deploy/cli/job/job_told.h"

namespace lockstep {

Status check_precision(const JobValues& values, const wire::JobSpec& job) {
  const auto conflict = fp8_conflict(job);
  if (!conflict) return Status::ok();
  return {Code::kUsage, told(values, "train.precision", job) + " but " +
                            told(values, conflict->key, job) + ": fp8 " + conflict->why + "; " +
                            conflict->advice};
}

}  // namespace lockstep
