#include "deploy/cli/job/job_loss.h"

#include <string>

#include "comm/wire/loss_kind.h"
#include "comm/wire/predictions.h"
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
  if (job.train().label_smoothing() > 0)
    return refused(" but " + told(values, "train.label_smoothing", job) +
                   ": only the labels of cross_entropy can be smoothed; set it to 0");
  for (const std::string& word : job.data().transforms())
    if (word.starts_with("mixup") || word.starts_with("cutmix"))
      return refused(" but " + told(values, "data.transforms", job) +
                     ": only the labels of cross_entropy can be mixed; leave out " + word);
  const bool knows_right = loss_kind(job.train()) == LossKind::kBce;
  if (job.checkpoint().best() == "accuracy" && !knows_right)
    return refused(" but " + told(values, "checkpoint.best", job) +
                   ": with this loss no prediction is right or wrong; take loss");
  return Status::ok();
}

}  // namespace lockstep
