#include "comm/run/job/loss_rules.h"

namespace lockstep {
namespace {

constexpr char kIsOwn[] = "it is for cross entropy, which the model does not use";

}  // namespace

std::optional<LossConflict> loss_conflict(const wire::JobSpec& job, bool is_own) {
  const LossKind kind = loss_kind(job.train());
  if (is_own && kind != LossKind::kCrossEntropy)
    return LossConflict{"train.loss", "train.loss " + job.train().loss(), kIsOwn, "leave it out"};
  if (!is_own && kind == LossKind::kCrossEntropy) return std::nullopt;
  if (job.train().label_smoothing() > 0)
    return LossConflict{"train.label_smoothing", "train.label_smoothing",
                        is_own ? kIsOwn : "only the labels of cross_entropy can be smoothed",
                        is_own ? "smooth them in the model, and leave it out" : "set it to 0"};
  for (const std::string& word : job.data().transforms())
    if (word.starts_with("mixup") || word.starts_with("cutmix"))
      return LossConflict{"data.transforms", "the transform " + word,
                          is_own ? kIsOwn : "only the labels of cross_entropy can be mixed",
                          is_own ? "take it out of data.transforms" : "leave out " + word};
  if (job.checkpoint().best() == "accuracy" && !knows_right(kind, is_own))
    return LossConflict{"checkpoint.best", "checkpoint.best accuracy",
                        "with this loss no prediction is right or wrong",
                        "use checkpoint.best: loss"};
  return std::nullopt;
}

Status refused_beside_own_loss(const LossConflict& conflict) {
  return {Code::kUsage,
          conflict.shown + " does not go with a model that gives its own loss; " + conflict.advice};
}

}  // namespace lockstep
