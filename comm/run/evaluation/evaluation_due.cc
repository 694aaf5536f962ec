#include "comm/run/evaluation/evaluation_due.h"

namespace lockstep {

bool evaluation_due(const Evaluations& when, Step applied, Step end) {
  if (!when.has_data || applied == 0) return false;
  const bool is_between = falls_due(when.every_steps, applied, when.turns);
  return is_between || applied >= end || applied % when.steps_per_epoch == 0;
}

}  // namespace lockstep
