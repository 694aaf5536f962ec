#include "coordinator/report/run_progress.h"

#include "comm/run/job/predictions.h"
#include "coordinator/state/evaluations.h"

namespace lockstep::coordinator {
namespace {

using Metrics = std::vector<std::pair<std::string, double>>;

void add_training(const Options& options, const RunStats& stats, Metrics* metrics) {
  if (stats.is_empty()) return;
  const auto predictions = static_cast<double>(predictions_per_sample(options.job.model()));
  metrics->emplace_back("loss", stats.loss());
  if (const auto correct = stats.correct_per_sample())
    metrics->emplace_back("accuracy", *correct / predictions);
  for (const MetricValue& metric : stats.last().metrics)
    metrics->emplace_back(metric.name, metric.value);
  metrics->emplace_back("samples_per_second", stats.samples_per_second() / options.shape.turns);
}

void add_evaluation(const State& state, Metrics* metrics) {
  if (state.evals.empty()) return;
  const EvalEntry& eval = state.evals.rbegin()->second;
  metrics->emplace_back("eval_loss", eval.loss);
  if (eval.samples == 0) return;
  if (!eval.no_accuracy)
    metrics->emplace_back("eval_accuracy",
                          static_cast<double>(eval.correct) / static_cast<double>(eval.samples));
  for (const MetricValue& metric : eval.metrics)
    metrics->emplace_back("eval_" + metric.name, metric.value);
  if (eval.top5)
    metrics->emplace_back("eval_top5",
                          static_cast<double>(*eval.top5) / static_cast<double>(eval.samples));
}

}  // namespace

trainer::RunProgress progress_of(const State& state, const Options& options,
                                 const RunStats& stats) {
  trainer::RunProgress progress;
  progress.step = state.completed;
  progress.total_steps = options.is_open_term() ? 0 : end_step(state, options);
  progress.is_ended = state.run == RunState::kEnded;
  progress.is_complete = progress.is_ended && state.exit_code == 0;
  const bool is_known = progress.total_steps >= progress.step && !stats.is_empty();
  if (progress.is_complete) {
    progress.seconds_left = 0;
  } else if (is_known && !progress.is_ended) {
    const auto left = static_cast<double>(progress.total_steps - progress.step);
    progress.seconds_left = left * stats.seconds_per_step();
  }
  Metrics& metrics = progress.metrics;
  metrics.emplace_back("step", static_cast<double>(progress.step));
  if (progress.total_steps > 0)
    metrics.emplace_back("total_steps", static_cast<double>(progress.total_steps));
  metrics.emplace_back("epoch",
                       static_cast<double>(plan_step(options.shape, state.completed).epoch));
  metrics.emplace_back("workers", static_cast<double>(state.ranks.size()));
  add_training(options, stats, &metrics);
  add_evaluation(state, &metrics);
  return progress;
}

}  // namespace lockstep::coordinator
