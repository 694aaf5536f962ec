#include "metrics/probes/job_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include "metrics/base/step_seconds.h"

namespace lockstep {
namespace {

enum RankPhase : size_t { kDataWait, kForward, kBackward, kCommunication, kOptimizer, kOther };

}  // namespace

JobProbe::Recent::Recent(Families& families, const std::string& name_10s,
                         const std::string& name_60s, const std::string& help)
    : ten_seconds(families, name_10s, help + " in the last 10 s; absent: not known.", {}),
      minute(families, name_60s, help + " in the last 60 s; absent: not known.", {}) {}

void JobProbe::Recent::set(size_t span, std::optional<double> value) {
  (span == 0 ? ten_seconds : minute).set(value);
}

JobProbe::JobProbe(Families& families)
    : settings_(families, "lockstep_job_settings",
                "Always 1; labels say what is trained, and how."),
      step_(families.gauge("lockstep_job_step", "Steps applied in the surviving lineage.")),
      planned_(families.gauge("lockstep_job_steps_planned",
                              "Steps at which the run is done; 0: not known yet.")),
      checkpoint_interval_(
          families.gauge("lockstep_job_checkpoint_interval_steps",
                         "Steps from one checkpoint to the next; 0: only at the end.")),
      epoch_(families.gauge("lockstep_job_epoch", "Pass over the training data, from 0.")),
      steps_total_(families.counter("lockstep_job_steps_total",
                                    "Steps recorded since this coordinator started.")),
      skipped_total_(families.counter(
          "lockstep_job_steps_skipped_total",
          "Steps without an update: the loss scaler left it out, or no sample had any weight.")),
      seconds_(families.histogram("lockstep_job_step_seconds", "Wall time of a step.",
                                  step_seconds_bounds())),
      samples_total_(families.counter("lockstep_job_samples_total",
                                      "Training samples in the steps recorded.")),
      samples_per_second_(families, "lockstep_job_recent_samples_per_second",
                          "lockstep_job_samples_per_second",
                          "lockstep_job_samples_total, per second,"),
      loss_(families.gauge("lockstep_job_loss", "Mean training loss of the last step.")),
      recent_loss_(families, "lockstep_job_recent_loss", "lockstep_job_minute_loss",
                   "Mean training loss"),
      accuracy_(families, "lockstep_job_train_accuracy_ratio",
                "Share of right predictions in the last step; of losses that know them.", {}),
      metrics_(families, "lockstep_job_train_metric",
               "Means over the last step of the model's own metrics, by name."),
      learning_rate_(
          families.gauge("lockstep_job_learning_rate", "Learning rate of the last step.")),
      data_wait_(families.counter("lockstep_job_data_wait_seconds_total",
                                  "Time ranks waited for their next batch, added up.")),
      communication_(families.counter(
          "lockstep_job_communication_seconds_total",
          "Time ranks waited for reduced gradients (not hidden by backward), added up.")),
      utilization_(families, "lockstep_job_recent_utilization_ratio",
                   "lockstep_job_utilization_ratio",
                   "Share of the ranks' time in steps spent in forward, backward, optimizer,"),
      goodput_(families.gauge("lockstep_job_goodput_ratio",
                              "Share of wall time spent in steps that survive.")),
      mfu_(families.gauge("lockstep_job_model_flops_utilization_ratio",
                          "Share of metrics.peak_tflops of all workers that the model's arithmetic "
                          "reaches, lately; 0: not known.")) {
  constexpr std::array kNames = {"data_wait",     "forward",   "backward",
                                 "communication", "optimizer", "other"};
  for (size_t i = 0; i < kRankPhases; ++i) {
    phases_[i] =
        &families.counter("lockstep_job_phase_seconds_total",
                          "Time of the ranks in recorded steps, added up.", {{"phase", kNames[i]}});
  }
}

void JobProbe::step_recorded(const JobStep& step) {
  step_.Set(static_cast<double>(step.steps_applied));
  epoch_.Set(step.epoch);
  steps_total_.Increment();
  if (step.skipped) skipped_total_.Increment();
  seconds_.Observe(step.seconds);
  samples_total_.Increment(static_cast<double>(step.samples));
  loss_.Set(step.loss);
  accuracy_.set(step.accuracy);
  metrics_.set(step.metrics);
  learning_rate_.Set(step.learning_rate);
}

void JobProbe::rank_times_recorded(const RankTimes& times) {
  phases_[kDataWait]->Increment(times.data_wait);
  phases_[kForward]->Increment(times.forward);
  phases_[kBackward]->Increment(times.backward);
  phases_[kCommunication]->Increment(times.communication);
  phases_[kOptimizer]->Increment(times.optimizer);
  phases_[kOther]->Increment(times.other);
  data_wait_.Increment(times.data_wait);
  communication_.Increment(times.communication);
}

void JobProbe::rolled_back(Step steps_applied) {
  step_.Set(static_cast<double>(steps_applied));
}

void JobProbe::planned(const JobPlan& plan) {
  plan_ = plan;
  planned_.Set(static_cast<double>(plan.steps));
  checkpoint_interval_.Set(static_cast<double>(plan.checkpoint_every));
}

void JobProbe::set_goodput(double ratio) {
  goodput_.Set(ratio);
}

void JobProbe::settings(const MetricLabels& labels) {
  settings_.set(labels);
}

void JobProbe::lately(size_t span, const JobLately& lately) {
  samples_per_second_.set(span, lately.samples_per_second);
  recent_loss_.set(span, lately.loss);
  utilization_.set(span, lately.utilization);
  if (span != 0) return;
  const double flops = lately.samples_per_second.value_or(0) * plan_.flops_per_sample;
  mfu_.Set(plan_.peak_flops > 0 ? flops / plan_.peak_flops : 0);
}

}  // namespace lockstep
