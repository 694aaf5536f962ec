// The running average of the weights (train.ema): one element, for host and device alike.
//
// Source: the exponential moving average of torch.optim.swa_utils (get_ema_multi_avg_fn), whose
// lerp computes the same for decays of at least 0.5.
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include "comm/base/host_device_macro.h"

namespace lockstep {

// `rate`: 1 - decay, computed in double and rounded once.
LOCKSTEP_HOST_DEVICE float next_average(float average, float parameter, float rate) {
  return average + rate * (parameter - average);
}

}  // namespace lockstep
