#include "deploy/cli/job/job_evaluation.h"

#include <string>

#include "comm/run/evaluation/eval_track.h"
#include "comm/run/job/predictions.h"
#include "deploy/cli/job/job_told.h"

namespace lockstep {

Status check_evaluation(const JobValues& values, const wire::JobSpec& job) {
  const bool is_early = job.train().patience() > 0;
  const char* const asks = job.eval().every_steps() > 0          ? "eval.every_steps"
                           : keeps_best(job.checkpoint().best()) ? "checkpoint.best"
                           : is_early                            ? "train.patience"
                                                                 : "";
  if (is_script(job.model())) return Status::ok();  // whether it evaluates, the script says
  if (!job.data().eval().path().empty() || std::string(asks).empty()) return Status::ok();
  return Status(Code::kUsage, told(values, asks, job) +
                                  ": there are no evaluation data; name some with data.eval.path, "
                                  "or hold some out with data.holdout");
}

}  // namespace lockstep
