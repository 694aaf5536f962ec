// Checks that a job's loss fits its data and model, once both are known.
#include <ATen/ops/lt.h>

#include <string>
#include <vector>

#include "comm/run/job/loss_rules.h"
#include "comm/run/job/metric_names.h"
#include "worker/torch/engine/engine_impl.h"

namespace lockstep {
namespace {

Status not_with(const std::string& key, const std::string& why) {
  return {Code::kUsage, key + " " + why};
}

}  // namespace

// Whether the loss can use the targets that the job names besides one class a sample.
Status EngineImpl::check_fields() const {
  const auto& fields = train_.shape().fields;
  if (fields == nullptr || model_->layout().own_loss) return Status::ok();
  std::vector<data::FieldSpec> targets;
  for (const data::FieldSpec& field : fields->specs())
    if (field.role == data::FieldRole::kTarget) targets.push_back(field);
  const std::string name =
      "train.loss " + (job_.train().loss().empty() ? "cross_entropy" : job_.train().loss());
  const std::string holds = text_of(data::FieldList(targets));
  if (targets.size() > 1)
    return not_with("data.targets", "holds " + holds + ", but " + name +
                                        " compares with one target; name one, or export a model "
                                        "that takes them all and gives losses");
  if (loss_kind(job_.train()) == LossKind::kCrossEntropy && !fields->has_label())
    return not_with(name, "needs a class for each sample, but data.targets holds " + holds +
                              "; set train.loss to " + losses_that(&LossRow::compares_numbers) +
                              " for numbers, to bce for values "
                              "of 0 and 1, or export a model that gives losses");
  return Status::ok();
}

// Bce of other values has no lower bound. Masks of 0 and 255 are the usual slip.
Status EngineImpl::check_targets(const data::SampleShape& shape, const int64_t* labels,
                                 uint64_t samples) const {
  if (shape.fields == nullptr || model_->layout().own_loss ||
      loss_kind(job_.train()) != LossKind::kBce)
    return Status::ok();
  const at::Tensor target = field_inputs(shape, labels, samples).target;
  if (!target.defined()) return Status::ok();
  const at::Tensor wrong = target.lt(0).logical_or(target.gt(1));
  if (!wrong.any().item<bool>()) return Status::ok();
  const auto worst = target.masked_select(wrong)[0].to(at::kFloat).item<float>();
  return {Code::kBadData, "a target of train.loss bce is " + std::to_string(worst) + " in step " +
                              std::to_string(state_->applied_steps()) +
                              "; values are from 0 to 1, so divide them, or write 1 instead of 255 "
                              "into masks"};
}

Status EngineImpl::check_loss() const {
  const LossKind kind = loss_kind(job_.train());
  const std::string name = "train.loss: " + job_.train().loss();
  const bool is_own = model_->layout().own_loss.has_value();
  if (const auto conflict = loss_conflict(job_, is_own))
    return is_own ? refused_beside_own_loss(*conflict)
                  : not_with(conflict->shown,
                             "beside " + name + ": " + conflict->why + "; " + conflict->advice);
  for (const std::string& metric : metrics())
    if (job_.train().ema() > 0 && metric.starts_with(std::string(kAverageName) + "_"))
      return not_with("train.ema",
                      "names the average's metrics ema_..., and the model gives a metric named " +
                          metric + "; give it another name");
  LOCKSTEP_RETURN_IF_ERROR(check_fields());
  if (kind == LossKind::kCrossEntropy) return Status::ok();
  if (train_.shape().is_sequence())
    return not_with(name, "is not for tokens, which are classes; leave the key out");
  if (kind == LossKind::kBce && train_.shape().has_label() && train_.classes() > 2)
    return not_with(name, "needs labels of 0 and 1, but the data have " +
                              std::to_string(train_.classes()) +
                              " classes; use cross_entropy for several classes");
  return Status::ok();
}

}  // namespace lockstep
