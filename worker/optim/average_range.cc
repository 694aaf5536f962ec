#include "worker/optim/average_range.h"

#include "comm/base/target_clones.h"

namespace lockstep {

LOCKSTEP_CLONES void average_range(const float* __restrict params, uint64_t n, float rate,
                                   float* __restrict average) {
  for (uint64_t i = 0; i < n; ++i) average[i] = next_average(average[i], params[i], rate);
}

}  // namespace lockstep
