// Shows the result of the last evaluation.
//
// Thread-safety: evaluated() by one thread at a time.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "metrics/base/families.h"

namespace lockstep {

class EvalProbe {
 public:
  struct Result {
    double loss = 0;
    std::optional<double> accuracy = {};         // none: is not shown
    std::optional<double> top5 = {};             // none: is not shown
    bool of_tokens = false;                      // the perplexity is shown, too
    std::map<std::string, double> metrics = {};  // the model's own
  };

  // Names begin with `prefix`, e.g. "lockstep_" on a worker.
  EvalProbe(Families& families, const std::string& prefix);
  void evaluated(const Result& result);

 private:
  prometheus::Counter& evaluations_;
  prometheus::Gauge& loss_;
  OptionalGauge accuracy_;
  OptionalGauge top5_;
  OptionalGauge perplexity_;
  NamedGauges metrics_;
};

}  // namespace lockstep
