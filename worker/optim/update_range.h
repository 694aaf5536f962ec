// One optimizer's pass over flat buffers on the CPU, in place.
//
// Thread-safety: a pure function of its arguments; ranges of concurrent calls may not overlap.
#pragma once

#include <cstdint>

#include "worker/optim/optimizer_segment.h"
#include "worker/optim/update_rules.h"

namespace lockstep {

// Updates the elements of the segment with the factors of its group. With `keeps_zeros` a parameter
// that is zero stays so.
void update_range(const UpdateFactors& factors, const UpdateBuffers& buffers,
                  const OptimizerSegment& segment, bool keeps_zeros);

}  // namespace lockstep
