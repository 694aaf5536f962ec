// The whole evaluation set, with the same bits for any number of ranks: batches are fixed by the
// data, ranks take contiguous runs of them, and their sums are added in the order of batches.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string>

#include "comm/wire/metric_names.h"
#include "comm/wire/predictions.h"
#include "data/read/cut_padding.h"
#include "data/read/label_count.h"
#include "data/read/sample_reader.h"
#include "worker/engine/engine_impl.h"
#include "worker/engine/top_classes.h"

namespace lockstep {
namespace {

void add_metric(const std::string& name, double value, wire::EvalReport* report) {
  wire::Metric& metric = *report->add_metrics();
  metric.set_name(name);
  metric.set_value(value);
}

}  // namespace

Result<wire::EvalReport> EngineImpl::run_evaluation() {
  if (eval_ == nullptr) return Status(Code::kInternal, "there are no evaluation data");
  if (view_.collective == nullptr)
    return Status(Code::kInternal, "evaluate() before begin_generation()");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const data::SampleReader reader,
      data::SampleReader::create(*eval_,
                                 {job_.data().transforms().begin(), job_.data().transforms().end()},
                                 train_.statistics(), device_->image_form()));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team,
                            data::SampleTeam::start(decode_threads(*eval_), data::Augmenter()));
  const PhaseClock::Scope scope(*phases_, WorkPhase::kEval);
  const at::NoGradGuard no_grad;
  const uint64_t samples = eval_->samples();
  const uint64_t batch = eval_batch();
  const uint64_t batches = (samples + batch - 1) / batch;
  const uint64_t world = view_.collective->world_size();
  const uint64_t share = (batches + world - 1) / world;  // of a rank; the last may have less
  LOCKSTEP_RETURN_IF_ERROR(device_->reset_statistics());

  const uint64_t kinds = average_forward_ != nullptr ? 2 : 1;
  std::vector<BatchScore> mine(share * kinds);  // of a batch, the weights' and the average's
  const uint64_t first = view_.collective->rank() * share;
  for (uint64_t i = 0; i < share && first + i < batches; ++i) {
    const uint64_t begin = (first + i) * batch;
    LOCKSTEP_RETURN_IF_ERROR(score_batch(reader, *team, begin, std::min(begin + batch, samples),
                                         std::span(mine).subspan(i * kinds, kinds)));
  }
  std::vector<BatchScore> all(mine.size() * world);
  const Tag tag{view_.generation, state_->applied_steps(), Phase::kEval, 0,
                mine.size() * sizeof(BatchScore)};
  LOCKSTEP_RETURN_IF_ERROR(view_.collective->all_gather(tag, std::as_bytes(std::span(mine)),
                                                        std::as_writable_bytes(std::span(all))));
  std::array<BatchScore, 2> totals;
  for (size_t i = 0; i < all.size(); ++i) totals[i % kinds].add(all[i]);
  const BatchScore& total = totals[0];
  wire::EvalReport report;
  report.set_step(state_->applied_steps());
  if (report.step() > 0) {
    report.set_epoch(data::plan_step(shape_, report.step() - 1).epoch);
    report.set_lr(schedule_.lr(report.step() - 1, view_.total_steps));
  }
  report.set_has_top5(total.has_top5 != 0);
  report.set_top5(total.top5);
  report.set_samples(is_by_sample() ? samples : data::all_counted_labels(*eval_));
  report.set_no_accuracy(!knows_right());
  report.set_correct(total.correct);
  report.set_loss(mean_loss(total, report.samples()));
  for (size_t i = 0; i < metrics().size(); ++i)
    add_metric(metrics()[i], total.metrics[i] / static_cast<double>(samples), &report);
  if (kinds > 1) report_average(totals[1], samples, &report);
  return report;
}

void EngineImpl::BatchScore::add(const BatchScore& other) {
  loss += other.loss;
  correct += other.correct;
  top5 += other.top5;
  has_top5 |= other.has_top5;
  weight += other.weight;
  for (size_t i = 0; i < metrics.size(); ++i) metrics[i] += other.metrics[i];
}

double EngineImpl::mean_loss(const BatchScore& total, uint64_t predictions) const {
  return model_->layout().has_weights() ? weighted_mean(total.loss, total.weight)
                                        : total.loss / static_cast<double>(predictions);
}

// Its scores are metrics of the evaluation, so whoever shows metrics shows them.
void EngineImpl::report_average(const BatchScore& total, uint64_t samples,
                                wire::EvalReport* report) const {
  const auto share = [&](uint64_t part) {
    return static_cast<double>(part) / static_cast<double>(report->samples());
  };
  const std::string prefix = std::string(kAverageName) + "_";
  add_metric(prefix + "loss", mean_loss(total, report->samples()), report);
  if (!report->no_accuracy()) add_metric(prefix + "accuracy", share(total.correct), report);
  if (report->has_top5()) add_metric(prefix + "top5", share(total.top5), report);
  for (size_t i = 0; i < metrics().size(); ++i)
    add_metric(prefix + metrics()[i], total.metrics[i] / static_cast<double>(samples), report);
}

Status EngineImpl::score_batch(const data::SampleReader& reader, data::SampleTeam& team,
                               uint64_t begin, uint64_t end, std::span<BatchScore> scores) {
  const uint64_t n = end - begin;
  eval_inputs_.resize(n * reader.input_bytes());
  eval_labels_.resize(n * reader.shape().label_words());
  LOCKSTEP_RETURN_IF_ERROR(
      team.read_range(reader, begin, end, eval_inputs_.data(), eval_labels_.data()));
  data::SampleShape shape = reader.shape();
  if (shape.is_padded) {
    std::vector<uint64_t> read(n);
    std::iota(read.begin(), read.end(), begin);
    const auto sequences = eval_->as<data::Sequences>();
    data::cut_padding(*sequences, read, eval_inputs_.data(), eval_labels_.data(), &shape);
  }
  LOCKSTEP_RETURN_IF_ERROR(check_targets(shape, eval_labels_.data(), n));
  LOCKSTEP_RETURN_IF_ERROR(
      device_->send(shape, eval_inputs_.data(), eval_labels_.data(), n, SlotValues{}));
  LOCKSTEP_ASSIGN_OR_RETURN(scores[0], score_with(*forward_));
  if (scores.size() > 1) {
    LOCKSTEP_ASSIGN_OR_RETURN(scores[1], score_with(*average_forward_));
  }
  return Status::ok();
}

Result<EngineImpl::BatchScore> EngineImpl::score_with(SlotForward& forward) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelOutput output, forward.evaluate());
  const at::Tensor& logits = output.logits;
  BatchScore score;
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
