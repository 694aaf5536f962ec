// The running average of the weights on the CPU (train.ema).
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cstdint>

#include "worker/optim/rules/average.h"

namespace lockstep {

// 1 - decay, as next_average() takes it.
inline float average_rate(double decay) {
  return static_cast<float>(1 - decay);
}

// One step of the average of `n` parameters, in place.
void average_range(const float* params, uint64_t n, float rate, float* average);

}  // namespace lockstep
