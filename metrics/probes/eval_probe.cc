#include "metrics/probes/eval_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <cmath>

namespace lockstep {

EvalProbe::EvalProbe(Families& families, const std::string& prefix)
    : evaluations_(families.counter(prefix + "evaluations_total", "Evaluations finished.")),
      loss_(families.gauge(prefix + "eval_loss", "Mean loss of the last evaluation.")),
      accuracy_(families.gauge(prefix + "eval_accuracy_ratio",
                               "Share of right predictions in the last evaluation.")),
      top5_(families, prefix + "eval_top5_ratio",
            "Share of predictions in the last evaluation whose right class is among the five "
            "likeliest; from 10 classes on.",
            {}),
      perplexity_(families, prefix + "eval_perplexity",
                  "Exponential of the loss of the last evaluation; of tokens.", {}) {}

void EvalProbe::evaluated(const Result& result) {
  evaluations_.Increment();
  loss_.Set(result.loss);
  accuracy_.Set(result.accuracy);
  top5_.set(result.top5);
  perplexity_.set(result.of_tokens ? std::optional(std::exp(result.loss)) : std::nullopt);
}

}  // namespace lockstep
