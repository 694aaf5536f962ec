#include "metrics/probes/eval_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <cmath>

namespace lockstep {

EvalProbe::EvalProbe(Families& families, const std::string& prefix)
    : evaluations_(families.counter(prefix + "evaluations_total", "Evaluations finished.")),
      loss_(families.gauge(prefix + "eval_loss", "Mean loss of the last evaluation.")),
      accuracy_(families, prefix + "eval_accuracy_ratio",
                "Share of right predictions in the last evaluation; of losses that know them.", {}),
      top5_(families, prefix + "eval_top5_ratio",
            "Share of predictions in the last evaluation whose right class is among the five "
            "likeliest; from 10 classes on.",
            {}),
      perplexity_(families, prefix + "eval_perplexity",
                  "Exponential of the loss of the last evaluation; of tokens.", {}),
      metrics_(families, prefix + "eval_metric",
               "Means over the last evaluation of the model's own metrics, by name.") {}

void EvalProbe::evaluated(const Result& result) {
  evaluations_.Increment();
  loss_.Set(result.loss);
  accuracy_.set(result.accuracy);
  top5_.set(result.top5);
  metrics_.set(result.metrics);
  perplexity_.set(result.of_tokens ? std::optional(std::exp(result.loss)) : std::nullopt);
}

}  // namespace lockstep
