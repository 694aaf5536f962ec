// One optimizer's pass over flat buffers on the CPU, in place.
//
// Thread-safety: a pure function of its arguments; ranges of concurrent calls may not overlap.
#pragma once

#include <cstdint>

#include "worker/optim/update_rules.h"

namespace lockstep {

// Updates elements [start, start + length) with the factors of `group`.
void update_range(const UpdateFactors& factors, uint32_t group, const UpdateBuffers& buffers,
                  uint64_t start, uint64_t length);

}  // namespace lockstep
