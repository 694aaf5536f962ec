#include "worker/process/metrics_probe.h"

namespace lockstep {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;

double seconds_of(const wire::PhaseTimes& t) {
  const uint64_t us = uint64_t{t.data_wait_us()} + t.forward_us() + t.backward_us() +
                      t.communication_us() + t.optimizer_us() + t.other_us();
  return static_cast<double>(us) / kMicrosecondsPerSecond;
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

void MetricsProbe::doing(Activity activity) {
  switch (activity) {
    case Activity::kIdle:
      phases_.switch_to(WorkPhase::kIdle);
      break;
    case Activity::kRecovery:
      phases_.switch_to(WorkPhase::kRecovery);
      break;
    case Activity::kStep:
      phases_.switch_to(WorkPhase::kOther);
      break;  // the engine says the rest
    case Activity::kEval:
      phases_.switch_to(WorkPhase::kEval);
      break;
    case Activity::kCheckpoint:
      phases_.switch_to(WorkPhase::kCheckpoint);
      break;
  }
}

void MetricsProbe::generation_started(Generation generation, MemberId member,
                                      const MemberPart& part) {
  own_slots_ = part.slots;
  place_.started(generation, part.rank);
  metrics_.member().started(generation, member, part.rank, part.world);
}

void MetricsProbe::step_applied(const wire::StepRecord& record,
                                std::span<const uint64_t> bucket_bounds) {
  AppliedStep step;
  step.steps_applied = record.step() + 1;
  step.epoch = record.epoch();
  for (const wire::SlotDigest& slot : record.slots()) {  // of all ranks
    const bool is_own = slot.slot() >= own_slots_.begin && slot.slot() < own_slots_.end;
    if (is_own) step.own_samples += slot.samples();
  }
  step.seconds = seconds_of(record.times());
  step.loss = record.loss();
  if (!record.no_accuracy())
    step.accuracy = share(record.correct(), record.samples() * predictions_per_sample_);
  step.learning_rate = record.lr();
  step.skipped = record.skipped();
  metrics_.step_applied(step);
  place_.applied(step.steps_applied);
  for (size_t i = 1; i < bucket_bounds.size(); ++i)
    metrics_.reduction().reduced((bucket_bounds[i] - bucket_bounds[i - 1]) * sizeof(float));
}

void MetricsProbe::evaluated(const wire::EvalReport& report) {
  // The coordinator shows the rest, once for all.
  EvalProbe::Result result;
  result.loss = report.loss();
  if (!report.no_accuracy()) result.accuracy = share(report.correct(), report.samples());
  metrics_.eval().evaluated(result);
}

void MetricsProbe::checkpoint_written(const wire::CheckpointReport& report) {
  if (report.error().empty())
    metrics_.checkpoint().complete(report.step(), report.bytes());
  else
    metrics_.checkpoint().failed();
}

}  // namespace lockstep
