#include "worker/engine/eval_scores.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "comm/run/job/metric_names.h"
#include "worker/engine/loss.h"

namespace lockstep {
namespace {

// A rank holds the scores of all: 256 MiB, and twice as much with an average.
constexpr uint64_t kMostBatches = uint64_t{1} << 21;

uint64_t batches_of(uint64_t samples, uint64_t batch) {
  return samples / batch + (samples % batch == 0 ? 0 : 1);
}

// Batches of every rank's share but the last ones'.
uint64_t batches_each(const EvalTask& task, uint64_t world) {
  return (batches_of(task.samples, task.batch) + world - 1) / world;
}

double mean_loss_of(const LossFacts& loss, const EvalScore& total, uint64_t predictions) {
  return loss.has_weights ? weighted_mean(total.loss, total.weight)
                          : total.loss / static_cast<double>(predictions);
}

// The average's scores are metrics of the evaluation, so they show wherever metrics show.
void report_average(const LossFacts& loss, const EvalScore& total, uint64_t samples,
                    wire::EvalReport* report) {
  const auto share = [&](uint64_t part) {
    return static_cast<double>(part) / static_cast<double>(report->samples());
  };
  const std::string prefix = std::string(kAverageName) + "_";
  add_metric(prefix + "loss", mean_loss_of(loss, total, report->samples()), report);
  if (!report->no_accuracy()) add_metric(prefix + "accuracy", share(total.correct), report);
  if (report->has_top5()) add_metric(prefix + "top5", share(total.top5), report);
  for (size_t i = 0; i < loss.metrics.size(); ++i)
    add_metric(prefix + loss.metrics[i], total.metrics[i] / static_cast<double>(samples), report);
}

}  // namespace

void add_metric(const std::string& name, double value, wire::EvalReport* report) {
  wire::Metric& metric = *report->add_metrics();
  metric.set_name(name);
  metric.set_value(value);
}

void EvalScore::add(const EvalScore& other) {
  loss += other.loss;
  correct += other.correct;
  top5 += other.top5;
  has_top5 |= other.has_top5;
  weight += other.weight;
  for (size_t i = 0; i < metrics.size(); ++i) metrics[i] += other.metrics[i];
}

Status check_eval_size(uint64_t samples, uint64_t batch) {
  const uint64_t batches = batches_of(samples, batch);
  if (batches <= kMostBatches) return Status::ok();
  return {Code::kUsage, "an evaluation of " + std::to_string(samples) + " samples has " +
                            std::to_string(batches) + " batches, and at most " +
                            std::to_string(kMostBatches) + " are scored; set train.eval_batch to " +
                            std::to_string(batches_of(samples, kMostBatches)) +
                            " or more, or evaluate fewer samples"};
}

EvalShare share_of(const EvalTask& task, uint64_t rank, uint64_t world) {
  const uint64_t samples = batches_each(task, world) * task.batch;
  return {std::min(rank * samples, task.samples), std::min((rank + 1) * samples, task.samples)};
}

Result<wire::EvalReport> evaluate_together(const GenerationView& view, const LossFacts& loss,
                                           Step applied, const EvalTask& task,
                                           const ScoreBatch& score) {
  const uint64_t world = view.collective->world_size();
  const uint64_t kinds = task.has_average ? 2 : 1;
  // The scores of each batch: the weights', then the average's.
  std::vector<EvalScore> mine(batches_each(task, world) * kinds);
  const EvalShare share = share_of(task, view.collective->rank(), world);
  std::span<EvalScore> scores(mine);
  for (uint64_t begin = share.begin; begin < share.end; begin += task.batch) {
    if (view.is_closed())
      return Status(Code::kAborted, "the generation was closed during an evaluation");
    LOCKSTEP_RETURN_IF_ERROR(
        score(begin, std::min(begin + task.batch, task.samples), scores.first(kinds)));
    scores = scores.subspan(kinds);
    view.has_scored();
  }
  std::vector<EvalScore> all(mine.size() * world);
  const Tag tag{view.generation, applied, Phase::kEval, task.number,
                mine.size() * sizeof(EvalScore)};
  LOCKSTEP_RETURN_IF_ERROR(view.collective->all_gather(tag, std::as_bytes(std::span(mine)),
                                                       std::as_writable_bytes(std::span(all))));
  std::array<EvalScore, 2> totals;
  for (size_t i = 0; i < all.size(); ++i) totals[i % kinds].add(all[i]);
  const EvalScore& total = totals[0];
  const uint64_t predictions =
      task.predictions > 0 ? task.predictions : static_cast<uint64_t>(std::llround(total.weight));
  wire::EvalReport report;
  report.set_step(applied);
  report.set_has_top5(total.has_top5 != 0);
  report.set_top5(total.top5);
  report.set_samples(predictions);
  report.set_no_accuracy(!loss.knows_right);
  report.set_correct(total.correct);
  report.set_loss(mean_loss_of(loss, total, predictions));
  for (size_t i = 0; i < loss.metrics.size(); ++i)
    add_metric(loss.metrics[i], total.metrics[i] / static_cast<double>(task.samples), &report);
  if (task.has_average) report_average(loss, totals[1], task.samples, &report);
  return report;
}

}  // namespace lockstep
