#include "worker/script/script_eval.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "comm/base/text/printable.h"
#include "comm/run/evaluation/eval_track.h"
#include "comm/run/job/metric_names.h"
#include "worker/engine/eval_scores.h"
#include "worker/script/slot_task.h"

namespace lockstep {
namespace {

// Every evaluation of a data set has the same seeds, from a step that no run has: the last one for
// the first data set, the one before for the second.
constexpr Step kSeedStep = ~Step{0};

// The key that asks for evaluations, with its value; empty: none does.
std::string asks(const wire::JobSpec& job) {
  if (job.eval().every_steps() > 0)
    return "eval.every_steps is " + std::to_string(job.eval().every_steps());
  if (keeps_best(job.checkpoint().best())) return "checkpoint.best is " + job.checkpoint().best();
  if (job.train().patience() > 0)
    return "train.patience is " + std::to_string(job.train().patience());
  if (where_eval_data_are(job.data()) == "named")
    return "data.eval.path is " + job.data().eval().path();
  return {};
}

Status add(const ls_reply& reply, uint64_t samples, size_t metrics, EvalScore& score) {
  if (reply.correct > reply.count || (metrics > 0 && reply.metrics == nullptr))
    return {Code::kInternal, "the score of an evaluation batch is malformed"};
  score.loss = reply.loss * static_cast<double>(reply.count);
  score.weight = static_cast<double>(reply.count);
  score.correct = reply.correct;
  for (size_t i = 0; i < metrics; ++i)
    score.metrics[i] = reply.metrics[i] * static_cast<double>(samples);
  return Status::ok();
}

// The script's words for it, before a verb.
std::string who(const ScriptEvalFacts& facts) {
  return "the script's evaluation" + (facts.name.empty() ? "" : " \"" + facts.name + "\"");
}

// In the order of reported_metrics().
void add_results(const ScriptEvalFacts& facts, const wire::EvalReport& found,
                 wire::EvalReport* report) {
  const std::vector<std::string> names = reported_metrics(facts);
  auto name = names.begin();
  add_metric(*name++, found.loss(), report);
  if (facts.knows_right)
    add_metric(*name++, static_cast<double>(found.correct()) / static_cast<double>(found.samples()),
               report);
  for (const wire::Metric& metric : found.metrics()) add_metric(*name++, metric.value(), report);
}

Result<wire::EvalReport> evaluate_one(const ScriptEvalFacts& facts, uint32_t number,
                                      const wire::JobSpec& job, const GenerationView& view,
                                      Step applied, const AskScript& ask) {
  const EvalTask task{.samples = facts.samples,
                      .batch = std::max(1u, job.train().eval_batch()),
                      .predictions = 0,
                      .has_average = false,
                      .number = number};
  const LossFacts loss{.knows_right = facts.knows_right,
                       .has_weights = true,
                       .metrics = facts.metrics,
                       .labels_per_sample = 1};
  const EvalShare share = share_of(task, view.collective->rank(), view.collective->world_size());
  const auto score = [&](uint64_t begin, uint64_t end, std::span<EvalScore> scores) -> Status {
    ls_order order{};
    order.kind = LS_EVAL;
    order.task.begin = begin;
    order.task.end = end;
    order.task.seed =
        slot_seed(job.seed(), kSeedStep - number, static_cast<uint32_t>(begin / task.batch));
    order.step = applied;
    order.share_end = share.end;
    order.evaluation = number;
    LOCKSTEP_ASSIGN_OR_RETURN(const ls_reply reply, ask(order));
    return add(reply, end - begin, facts.metrics.size(), scores[0]);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(wire::EvalReport report,
                            evaluate_together(view, loss, applied, task, score));
  if (report.samples() > 0) return report;
  return Status(Code::kBadData,
                who(facts) + " after step " + std::to_string(applied) +
                    " counted nothing in any batch; look at the \"count\" that it returns");
}

Status check_names(const ScriptEvals& evals) {
  std::set<std::string> all;
  for (const ScriptEvalFacts& facts : evals) {
    const bool is_first = &facts == &evals.front();
    for (const std::string& name : is_first ? facts.metrics : reported_metrics(facts)) {
      if (!is_metric_name(name))
        return {Code::kUsage, who(facts) + " reports \"" + printable(name) +
                                  "\", which is longer than " + std::to_string(kMetricNameBytes) +
                                  " bytes; shorten its name"};
      if (!all.insert(name).second)
        return {Code::kUsage, "two evaluations of the script report \"" + name +
                                  "\"; give one of them another name"};
    }
  }
  if (all.size() <= kMetricsOfAnEvaluation) return Status::ok();
  return {Code::kUsage, "the script's evaluations report " + std::to_string(all.size()) +
                            " numbers besides the first one's loss and accuracy, and at most " +
                            std::to_string(kMetricsOfAnEvaluation) +
                            " stand beside each other; leave some metrics or evaluations out"};
}

}  // namespace

std::vector<std::string> reported_metrics(const ScriptEvalFacts& facts) {
  std::vector<std::string> names{facts.name + "/loss"};
  if (facts.knows_right) names.push_back(facts.name + "/accuracy");
  for (const std::string& metric : facts.metrics) names.push_back(facts.name + "/" + metric);
  return names;
}

std::string_view where_eval_data_are(const wire::DataSpec& data) {
  if (data.train().path().empty()) return "";
  if (data.holdout() > 0 || data.eval().path() == data.train().path()) return "found";
  return data.eval().path().empty() ? "" : "named";
}

Status check_script_evals(const ScriptEvals& evals, const wire::JobSpec& job) {
  const std::string key = asks(job);
  if (evals.empty() && !key.empty())
    return {Code::kUsage, key +
                              ", but the script gives no evaluation; call run.evaluate(fn, data) "
                              "before run.batches(), or leave the key out"};
  if (!evals.empty() && !evals.front().knows_right && job.checkpoint().best() == "accuracy")
    return {Code::kUsage,
            "checkpoint.best is accuracy, but the script's evaluation does not count right "
            "predictions; return \"correct\" beside \"loss\", or take checkpoint.best=loss"};
  for (const ScriptEvalFacts& facts : evals) {
    if (const Status metrics = check_metrics(facts.metrics); !metrics.is_ok())
      return {metrics.code(), who(facts) + " " + metrics.message()};
    LOCKSTEP_RETURN_IF_ERROR(
        check_eval_size(facts.samples, std::max(1u, job.train().eval_batch())));
  }
  return check_names(evals);
}

Result<wire::EvalReport> evaluate_script(const ScriptEvals& evals, const wire::JobSpec& job,
                                         const GenerationView& view, Step applied,
                                         const AskScript& ask) {
  wire::EvalReport report;
  for (uint32_t number = 0; number < evals.size(); ++number) {
    LOCKSTEP_ASSIGN_OR_RETURN(wire::EvalReport found,
                              evaluate_one(evals[number], number, job, view, applied, ask));
    if (number == 0)
      report = std::move(found);
    else
      add_results(evals[number], found, &report);
  }
  return report;
}

}  // namespace lockstep
