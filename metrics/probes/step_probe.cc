#include "metrics/probes/step_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include "metrics/base/step_seconds.h"

namespace lockstep {

StepProbe::StepProbe(Families& families, const Clock& clock)
    : clock_(clock),
      step_(families.gauge("lockstep_step", "Steps applied to the weights this worker holds.")),
      epoch_(families.gauge("lockstep_epoch", "Pass over the training data, from 0.")),
      steps_total_(families.counter("lockstep_steps_total", "Steps this process applied.")),
      skipped_total_(families.counter(
          "lockstep_steps_skipped_total",
          "Steps without an update: the loss scaler left it out, or no sample had any weight.")),
      seconds_(families.histogram("lockstep_step_seconds", "Wall time of a step.",
                                  step_seconds_bounds())),
      samples_total_(families.counter("lockstep_samples_total",
                                      "Training samples that this worker computed.")),
      samples_per_second_(families.gauge("lockstep_samples_per_second",
                                         "lockstep_samples_total, per second, lately.")),
      loss_(families.gauge("lockstep_loss", "Mean training loss of the last step.")),
      accuracy_(families, "lockstep_train_accuracy_ratio",
                "Share of right predictions in the last step; of losses that know them.", {}),
      learning_rate_(families.gauge("lockstep_learning_rate", "Learning rate of the last step.")) {}

void StepProbe::applied(const AppliedStep& step) {
  step_.Set(static_cast<double>(step.steps_applied));
  epoch_.Set(step.epoch);
  steps_total_.Increment();
  if (step.skipped) skipped_total_.Increment();
  seconds_.Observe(step.seconds);
  samples_total_.Increment(static_cast<double>(step.own_samples));
  samples_.update(clock_.monotonic_ns(), samples_total_.Value());
  loss_.Set(step.loss);
  accuracy_.set(step.accuracy);
  learning_rate_.Set(step.learning_rate);
}

void StepProbe::refresh() {
  samples_per_second_.Set(samples_.per_second(clock_.monotonic_ns()));
}

}  // namespace lockstep
