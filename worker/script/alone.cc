#include "worker/script/alone.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "comm/base/clock.h"
#include "comm/collectives/loopback/loopback.h"
#include "comm/run/checkpoint/weights_hash.h"
#include "worker/session/phase_plan.h"

namespace lockstep {
namespace {

constexpr int64_t kProgressMs = 2'000;

class ProgressLines {
 public:
  ProgressLines(uint64_t total, uint32_t turns) : total_(total), turns_(turns) {}

  void show(const wire::StepRecord& record, bool epoch_ended, bool is_last) {
    if ((record.step() + 1) % turns_ == 0) samples_ += record.samples();
    const int64_t now_ms = now();
    const int64_t spent_ms = now_ms - since_ms_;
    if (!is_last && spent_ms < kProgressMs) return;
    std::fprintf(
        stderr, "lockstep: epoch %llu, step %llu/%llu, loss %.4f, %.0f samples/s%s\n",
        static_cast<unsigned long long>(record.epoch() + 1),
        static_cast<unsigned long long>(record.step() + 1), static_cast<unsigned long long>(total_),
        record.loss(),
        static_cast<double>(samples_) * 1000 / static_cast<double>(std::max<int64_t>(spent_ms, 1)),
        epoch_ended ? ", epoch done" : "");
    since_ms_ = now_ms;
    samples_ = 0;
  }

 private:
  int64_t now() const { return clock_.monotonic_ns() / 1'000'000; }

  const uint64_t total_;
  const uint32_t turns_;
  SystemClock clock_;
  int64_t since_ms_ = now();
  uint64_t samples_ = 0;
};

void show(const wire::EvalReport& report) {
  const auto samples = static_cast<double>(report.samples());
  std::string text = "loss " + std::to_string(report.loss());
  if (!report.no_accuracy())
    text += ", accuracy " + std::to_string(static_cast<double>(report.correct()) / samples);
  for (const wire::Metric& metric : report.metrics())
    text += ", " + metric.name() + " " + std::to_string(metric.value());
  std::fprintf(stderr, "lockstep: evaluation after step %llu: %s\n",
               static_cast<unsigned long long>(report.step()), text.c_str());
}

// Trains until the last step of the plan, which train.patience or the script may bring nearer, or
// until the step at which the script has voted to stop, as a run of several would end.
Status train(PhasePlan& plan, ScriptEngine& engine) {
  const uint64_t total = plan.total_steps;
  ProgressLines progress(total, plan.evals.turns);
  EvalTrack track;
  while (engine.applied_steps() < plan.total_steps) {
    LOCKSTEP_ASSIGN_OR_RETURN(const StepOutcome outcome, engine.step());
    if (!std::isfinite(outcome.record.loss()) && !outcome.record.skipped())
      return {Code::kBadData, "the loss of step " + std::to_string(outcome.record.step() + 1) +
                                  " is not a number; lower the learning rate, or look at the "
                                  "samples of that step"};
    if (outcome.ends_here) plan.end_at(engine.applied_steps());
    progress.show(outcome.record, outcome.epoch_ended, engine.applied_steps() >= plan.total_steps);
    if (outcome.all_want_stop && engine.applied_steps() < plan.total_steps) break;
    const Step applied = engine.applied_steps();
    if (plan.after_step(applied) == Phase::kEval) {
      LOCKSTEP_ASSIGN_OR_RETURN(const wire::EvalReport report, engine.evaluate());
      show(report);
      track.add(lockstep::mark_of(report), plan.by);
      plan.end_with(track, total);
    }
    if (!plan.has_edge(applied)) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const bool ends_here, engine.cross_edge(applied >= plan.total_steps));
    if (ends_here) plan.end_at(applied);
  }
  return Status::ok();
}

}  // namespace

AloneGeneration::AloneGeneration(ScriptEngine& engine)
    : engine_(engine), collectives_(make_loopback(1, {&engine.gradient_buffer()})) {}

AloneGeneration::~AloneGeneration() {
  engine_.end_generation();
}

Status AloneGeneration::begin(Facts facts) {
  GenerationView view;
  view.generation = 1;
  view.collective = collectives_.front().get();
  view.slot_runs = {{0, facts.slots}};
  view.bucket_bounds = {0, engine_.gradient_buffer().layout().elements};
  view.total_steps = facts.total_steps;
  view.skips = std::move(facts.skips);
  view.is_writer = facts.is_writer;
  return engine_.begin_generation(view, {});
}

void AloneGeneration::abort() {
  collectives_.front()->abort();
}

Result<AloneEnd> run_alone(const wire::JobSpec& job, const RunShape& shape, ScriptEngine& engine,
                           bool has_edges) {
  const uint64_t total = total_steps(shape, job.train().epochs(), job.train().max_steps());
  wire::DataFacts facts;
  facts.set_train_samples(shape.samples);
  facts.set_turns(shape.turns);
  facts.set_eval_samples(engine.evals().empty() ? 0 : engine.evals().front().samples);
  PhasePlan plan = make_phase_plan(job, facts, total, has_edges);
  {
    AloneGeneration generation(engine);
    LOCKSTEP_RETURN_IF_ERROR(generation.begin(
        {.slots = shape.slots, .total_steps = total, .skips = {}, .is_writer = true}));
    const Status trained = train(plan, engine);
    if (!trained.is_ok()) {
      generation.abort();
      return trained;
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<StateTensor> state, engine.state());
  return AloneEnd{.weights_sha256 = weights_hash(state, /*all=*/false),
                  .is_done = engine.applied_steps() >= plan.total_steps};
}

}  // namespace lockstep
