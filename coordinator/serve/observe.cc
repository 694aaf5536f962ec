#include "coordinator/serve/observe.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "coordinator/report/model_flops.h"
#include "coordinator/state/evaluations.h"

namespace lockstep::coordinator {
namespace {

constexpr std::array kEvictions = {Reason::kEvictedUnpromised, Reason::kRegrouped,
                                   Reason::kStandbyDied, Reason::kEndedTerm, Reason::kEndedDeath};

double seconds(uint32_t us) {
  return static_cast<double>(us) / 1e6;
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

void write_line(Logger& logger, const LogLine& line) {
  switch (line.level) {
    case LogLine::Level::kInfo:
      return logger.info(line.event, line.message);
    case LogLine::Level::kWarn:
      return logger.warn(line.event, line.message);
    case LogLine::Level::kError:
      return logger.error(line.event, line.message);
  }
}

void log_reason(Logger& logger, Reason reason, const Event& event) {
  if (!is_refusal(reason) || reason == Reason::kRefusedEnded) return;
  const auto* message = std::get_if<MessageReceived>(&event);
  if (message == nullptr) return;
  logger.info("message_refused", std::string("refused a message: ") + reason_name(reason),
              {{"reason", reason_name(reason)},
               {"connection", message->connection},
               {"kind", static_cast<int>(message->envelope.body_case())},
               {"its_term", message->envelope.term()},
               {"its_generation", message->envelope.generation()}});
}

void observe_begin(CoordinatorMetrics& metrics, const State& state) {
  metrics.membership().term_began(state.term);
  std::vector<std::string> reasons;
  for (const Reason reason : kEvictions) reasons.push_back(reason_name(reason));
  metrics.membership().eviction_reasons(reasons);
  metrics.job().rolled_back(state.completed);
  metrics.checkpoint().newest(state.checkpoints.empty() ? 0 : state.checkpoints.back().step);
}

void observe_state(CoordinatorMetrics& metrics, const State& state, const Options& options) {
  const uint32_t workers = state.wanted_workers != 0 ? state.wanted_workers : options.workers;
  metrics.membership().wanted(workers);
  metrics.job().planned({.steps = options.is_open_term() ? 0 : end_step(state, options),
                         .checkpoint_every = options.job.checkpoint().every_steps(),
                         .flops_per_sample = flops_per_sample(options.job.model()),
                         .peak_flops = options.job.metrics().peak_tflops() * 1e12 * workers});
  const wire::JobSpec& job = options.job;
  metrics.job().settings({{"model", job.model().name()},
                          {"optimizer", job.optimizer().name()},
                          {"schedule", job.schedule().name()},
                          {"precision", job.train().precision()},
                          {"numerics", job.comm().numerics()},
                          {"data_format", job.data().train().format()},
                          {"global_batch", std::to_string(job.train().global_batch())},
                          {"slots", std::to_string(job.train().slots())},
                          {"epochs", std::to_string(job.train().epochs())},
                          {"max_steps", std::to_string(job.train().max_steps())}});
  metrics.check().set_tainted(state.checks.tainted.has_value());
}

void observe_ranks(CoordinatorMetrics& metrics, const State& state, const PhaseWatch& phases,
                   int64_t now_ms) {
  std::vector<RankSample> ranks;
  for (MemberId id : state.ranks) {
    const Member& member = state.members.at(id);
    RankSample& rank = ranks.emplace_back();
    rank.rank = member.rank;
    rank.node = member.node;
    rank.local_rank = member.local_rank;
    rank.silence_seconds =
        static_cast<double>(std::max<int64_t>(0, now_ms - member.heard_ms)) / 1e3;
    for (const Span span : kSpans) {
      const PhaseSums sums = phases.of(id, span, now_ms);
      const uint64_t slots = sums.steps * (member.slots.end - member.slots.begin);
      if (slots == 0 || sums.total_us() == 0) continue;
      RankTimesLately& lately = span == Span::kMinute ? rank.minute : rank.ten_seconds;
      lately.slot_seconds = static_cast<double>(sums.own_us()) / 1e6 / static_cast<double>(slots);
      lately.data_wait_ratio = share(sums.us[kDataWaitPhase], sums.total_us());
    }
  }
  metrics.ranks().show(ranks);
}

void observe_recent(CoordinatorMetrics& metrics, const Options& options, const StepWatch& steps,
                    const PhaseWatch& phases, int64_t now_ms) {
  for (size_t i = 0; i < kSpans.size(); ++i) {
    const PhaseSums sums = phases.all(kSpans[i], now_ms);
    JobLately lately;
    lately.samples_per_second = steps.samples_per_second(kSpans[i], now_ms);
    if (lately.samples_per_second) *lately.samples_per_second /= options.shape.turns;
    lately.loss = steps.loss(kSpans[i], now_ms);
    if (sums.total_us() > 0)
      lately.utilization =
          share(sums.us[kForwardPhase] + sums.us[kBackwardPhase] + sums.us[kOptimizerPhase],
                sums.total_us());
    metrics.job().lately(i, lately);
  }
}

void observe_reason(CoordinatorMetrics& metrics, Reason reason) {
  if (std::find(kEvictions.begin(), kEvictions.end(), reason) != kEvictions.end()) {
    metrics.membership().evicted(reason_name(reason));
  }
  if (reason == Reason::kCheckpointFailed || reason == Reason::kEndedCheckpointFailed) {
    metrics.checkpoint().failed();
  }
}

void observe_entry(CoordinatorMetrics& metrics, bool of_tokens, const JournalEntry& entry) {
  if (const auto* e = std::get_if<GenerationEntry>(&entry);
      e != nullptr && e->state == GenerationState::kStarted) {
    metrics.membership().generation_started(e->generation);
  }
  if (const auto* e = std::get_if<RecordsEntry>(&entry)) {
    metrics.journal().batch_received(e->records.size());
    for (const wire::StepRecord& record : e->records) {
      const wire::PhaseTimes& t = record.times();
      metrics.job().rank_times_recorded({seconds(t.data_wait_us()), seconds(t.forward_us()),
                                         seconds(t.backward_us()), seconds(t.communication_us()),
                                         seconds(t.optimizer_us()), seconds(t.other_us())});
    }
  }
  if (const auto* e = std::get_if<EvalEntry>(&entry)) {
    EvalProbe::Result result;
    result.loss = e->loss;
    result.of_tokens = of_tokens;
    if (!e->no_accuracy) result.accuracy = share(e->correct, e->samples);
    for (const MetricValue& metric : e->metrics) result.metrics[metric.name] = metric.value;
    if (e->top5) result.top5 = share(*e->top5, e->samples);
    metrics.eval().evaluated(result);
  }
  if (const auto* e = std::get_if<CheckpointEntry>(&entry);
      e != nullptr && e->state == CheckpointState::kComplete) {
    metrics.checkpoint().complete(e->step, e->bytes);
  }
  if (const auto* e = std::get_if<CheckEntry>(&entry)) {
    if (e->agreed) {
      metrics.check().agreed();
    } else {
      metrics.check().differed();
    }
  }
}

void observe_step(CoordinatorMetrics& metrics, const StepEntry& step, const Options& options) {
  const uint64_t predictions = predictions_per_sample(options.job.model());
  JobStep seen;
  seen.steps_applied = step.step + 1;
  seen.epoch = step.epoch;
  seen.samples = plan_step(options.shape, step.step).last_of_batch ? step.samples : 0;
  seen.seconds = static_cast<double>(step.wall_us) / 1e6;
  seen.loss = step.loss;
  if (!step.no_accuracy) seen.accuracy = share(step.correct, step.samples * predictions);
  for (const MetricValue& metric : step.metrics) seen.metrics[metric.name] = metric.value;
  seen.learning_rate = step.lr;
  seen.skipped = step.skipped;
  metrics.job().step_recorded(seen);
}

void observe_members(CoordinatorMetrics& metrics, const State& state) {
  std::map<std::string, uint64_t> by_state;
  for (const auto& [id, member] : state.members) ++by_state[member_state_name(member.state)];
  metrics.membership().members(by_state);
}

}  // namespace lockstep::coordinator
