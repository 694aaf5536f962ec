// A range of the flat buffers with the same settings for all of its elements.
#pragma once

#include <cstdint>

namespace lockstep {

// Elements [start, start + length) of the flat buffers.
struct OptimizerSegment {
  uint64_t start = 0;
  uint64_t length = 0;
  uint32_t group = 0;
  bool is_pruned = false;  // zeros stay zero while OptimizerStep::keeps_zeros
};

}  // namespace lockstep
