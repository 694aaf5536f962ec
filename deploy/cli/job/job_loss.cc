#include "deploy/cli/job/job_loss.h"

#include <string>

#include "comm/run/job/loss_rules.h"
#include "comm/run/job/predictions.h"
#include "deploy/cli/job/job_told.h"

namespace lockstep {

Status check_loss(const JobValues& values, const wire::JobSpec& job) {
  if (loss_kind(job.train()) == LossKind::kCrossEntropy) return Status::ok();
  const auto refused = [&](const std::string& what) {
    return Status(Code::kUsage, told(values, "train.loss", job) + what);
  };
  if (learns_from_tokens(job.model()))
    return refused(" but " + told(values, "model.name", job) +
                   ": tokens are classes; take cross_entropy, which is the default");
  if (const auto conflict = loss_conflict(job, /*is_own=*/false))
    return refused(" but " + told(values, conflict->key, job) + ": " + conflict->why + "; " +
                   conflict->advice);
  return Status::ok();
}

}  // namespace lockstep
