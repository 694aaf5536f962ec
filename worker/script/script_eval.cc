#include "worker/script/script_eval.h"

#include <algorithm>
#include <span>

#include "comm/run/evaluation/eval_track.h"
#include "comm/run/job/metric_names.h"
#include "worker/engine/eval_scores.h"
#include "worker/script/slot_task.h"

namespace lockstep {
namespace {

// Every evaluation has the same seeds, from a step that no run has.
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

}  // namespace

std::string_view where_eval_data_are(const wire::DataSpec& data) {
  if (data.train().path().empty()) return "";
  if (data.holdout() > 0 || data.eval().path() == data.train().path()) return "found";
  return data.eval().path().empty() ? "" : "named";
}

Status check_script_eval(const ScriptEvalFacts& facts, const wire::JobSpec& job) {
  const std::string key = asks(job);
  if (facts.samples == 0 && !key.empty())
    return {Code::kUsage, key +
                              ", but the script gives no evaluation; call run.evaluate(fn, data) "
                              "before run.batches(), or leave the key out"};
  if (facts.samples > 0 && !facts.knows_right && job.checkpoint().best() == "accuracy")
    return {Code::kUsage,
            "checkpoint.best is accuracy, but the script's evaluation does not count right "
            "predictions; return \"correct\" beside \"loss\", or take checkpoint.best=loss"};
  if (const Status metrics = check_metrics(facts.metrics); !metrics.is_ok())
    return {metrics.code(), "the script's evaluation " + metrics.message()};
  return check_eval_size(facts.samples, std::max(1u, job.train().eval_batch()));
}

Result<wire::EvalReport> evaluate_script(const ScriptEvalFacts& facts, const wire::JobSpec& job,
                                         const GenerationView& view, Step applied,
                                         const AskScript& ask) {
  const EvalTask task{.samples = facts.samples,
                      .batch = std::max(1u, job.train().eval_batch()),
                      .predictions = 0,
                      .has_average = false};
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
    order.task.seed = slot_seed(job.seed(), kSeedStep, static_cast<uint32_t>(begin / task.batch));
    order.step = applied;
    order.share_end = share.end;
    LOCKSTEP_ASSIGN_OR_RETURN(const ls_reply reply, ask(order));
    return add(reply, end - begin, facts.metrics.size(), scores[0]);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(wire::EvalReport report,
                            evaluate_together(view, loss, applied, task, score));
  if (report.samples() > 0) return report;
  return Status(Code::kBadData,
                "the script's evaluation after step " + std::to_string(applied) +
                    " counted nothing in any batch; look at the \"count\" that it returns");
}

}  // namespace lockstep
