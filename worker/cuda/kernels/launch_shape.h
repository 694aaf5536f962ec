// How much work a launch may have: pure functions of sizes, so that the CPU can test them.
//
// Kernels walk their work with a stride of the grid. So a grid may be smaller than the work, and
// the bits do not depend on the grid.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::cuda {

inline constexpr uint64_t kMostGridBlocks =
    0x7fffffff;  // CUDA's limit in x; in y and z it is 65,535

// Blocks for `items` of work, `per_block` each.
inline uint32_t blocks_for(uint64_t items, uint32_t per_block, uint64_t most = kMostGridBlocks) {
  const uint64_t blocks = items / per_block + (items % per_block != 0 ? 1 : 0);
  return static_cast<uint32_t>(std::min(blocks, most));
}

}  // namespace lockstep::cuda
