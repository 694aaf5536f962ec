// Scores a batch of evaluation data; engine/eval_scores.h spreads the batches over the ranks.
#include <ATen/core/grad_mode.h>

#include <span>

#include "comm/run/job/predictions.h"
#include "data/loader/cut_padding.h"
#include "data/loader/job_loader.h"
#include "data/loader/label_count.h"
#include "data/loader/sample_reader.h"
#include "worker/engine/loss.h"
#include "worker/torch/engine/engine_impl.h"
#include "worker/torch/engine/top_classes.h"

namespace lockstep {

Result<wire::EvalReport> EngineImpl::run_evaluation() {
  if (eval_ == nullptr) return Status(Code::kInternal, "there are no evaluation data");
  if (driver_.view().collective == nullptr)
    return Status(Code::kInternal, "evaluate() before begin_generation()");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const data::SampleReader reader,
      data::SampleReader::create(*eval_,
                                 {job_.data().transforms().begin(), job_.data().transforms().end()},
                                 train_.statistics(), device_->image_form()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto team,
      data::SampleTeam::start(data::job_decode_threads(job_, *eval_), data::Augmenter()));
  const PhaseClock::Scope scope(*phases_, WorkPhase::kEval);
  const at::NoGradGuard no_grad;
  LOCKSTEP_RETURN_IF_ERROR(device_->reset_statistics());
  const uint64_t samples = eval_->samples();
  const EvalTask task{.samples = samples,
                      .batch = eval_batch(),
                      .predictions = is_by_sample() ? samples : data::all_counted_labels(*eval_),
                      .has_average = average_forward_ != nullptr};
  const Step applied = state_->applied_steps();
  LOCKSTEP_ASSIGN_OR_RETURN(
      wire::EvalReport report,
      evaluate_together(driver_.view(), driver_.loss(), applied, task,
                        [&](uint64_t begin, uint64_t end, std::span<EvalScore> scores) {
                          return score_batch(reader, *team, begin, end, scores);
                        }));
  if (applied > 0) {
    report.set_epoch(plan_step(shape_, applied - 1).epoch);
    report.set_lr(schedule_.lr(applied - 1, driver_.view().total_steps));
  }
  return report;
}

Status EngineImpl::score_batch(const data::SampleReader& reader, data::SampleTeam& team,
                               uint64_t begin, uint64_t end, std::span<EvalScore> scores) {
  const uint64_t n = end - begin;
  eval_inputs_.resize(n * reader.input_bytes());
  eval_labels_.resize(n * reader.shape().label_words());
  LOCKSTEP_RETURN_IF_ERROR(
      team.read_range(reader, begin, end, eval_inputs_.data(), eval_labels_.data()));
  data::SampleShape shape = reader.shape();
  data::cut_padding(*eval_, begin, end, eval_inputs_.data(), eval_labels_.data(), &shape);
  LOCKSTEP_RETURN_IF_ERROR(check_targets(shape, eval_labels_.data(), n));
  LOCKSTEP_RETURN_IF_ERROR(
      device_->send(shape, eval_inputs_.data(), eval_labels_.data(), n, SlotValues{}));
  LOCKSTEP_ASSIGN_OR_RETURN(scores[0], score_with(*forward_));
  if (scores.size() > 1) {
    LOCKSTEP_ASSIGN_OR_RETURN(scores[1], score_with(*average_forward_));
  }
  return Status::ok();
}

Result<EvalScore> EngineImpl::score_with(SlotForward& forward) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelOutput output, forward.evaluate(state_->counters()));
  const at::Tensor& logits = output.logits;
  EvalScore score;
  const bool are_classes =
      !model_->layout().own_loss && loss_kind(job_.train()) == LossKind::kCrossEntropy;
  if (are_classes && logits.size(-1) >= kFewestClassesForTop && !predicts_tokens(job_)) {
    score.has_top5 = 1;
    score.top5 = count_in_top(logits, eval_labels_.data());  // the loss may overwrite the logits
  }
  LOCKSTEP_RETURN_IF_ERROR(
      output.losses.defined()
          ? device_->start_losses(output, /*gradient=*/nullptr)
          : device_->start_loss(logits, !model_->keeps_logits(), /*gradient=*/nullptr));
  LOCKSTEP_ASSIGN_OR_RETURN(const SlotScore loss, device_->loss());
  score.loss = loss.sum;
  score.correct = loss.correct;
  score.weight = loss.weight;
  score.metrics = loss.metrics;
  return score;
}

}  // namespace lockstep
