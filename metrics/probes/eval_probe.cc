#include "metrics/probes/eval_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

namespace lockstep {

EvalProbe::EvalProbe(Families& families, const std::string& prefix)
    : evaluations_(families.counter(prefix + "evaluations_total", "Evaluations finished.")),
      loss_(families.gauge(prefix + "eval_loss", "Mean loss of the last evaluation.")),
      accuracy_(families.gauge(prefix + "eval_accuracy_ratio",
                               "Share of right predictions in the last evaluation.")) {}

void EvalProbe::evaluated(double loss, double accuracy) {
  evaluations_.Increment();
  loss_.Set(loss);
  accuracy_.Set(accuracy);
}

}  // namespace lockstep
