// Shows the result of the last evaluation.
//
// Thread-safety: evaluated() from any thread.
#pragma once

#include <string>

#include "metrics/base/families.h"

namespace lockstep {

class EvalProbe {
 public:
  // Names begin with `prefix`, e.g. "lockstep_" on a worker.
  EvalProbe(Families& families, const std::string& prefix);
  void evaluated(double loss, double accuracy);

 private:
  prometheus::Counter& evaluations_;
  prometheus::Gauge& loss_;
  prometheus::Gauge& accuracy_;
};

}  // namespace lockstep
