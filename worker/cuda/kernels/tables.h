// The tables that kernels walk. The host makes them once a run.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/cuda/kernels/apply_state.h"
#include "worker/optim/grad_norm.h"
#include "worker/optim/optimizer_segment.h"

namespace lockstep::cuda {

// The elements that one block of threads updates: `length` elements from `start`, both multiples of
// four.
struct UpdateChunk {
  uint64_t start = 0;
  uint32_t length = 0;
  uint16_t group = 0;
  uint16_t is_pruned = 0;  // OptimizerSegment::is_pruned
};

inline constexpr uint32_t kUpdateChunk = 16 * 1024;  // elements

// REQUIRES: segments start and end at multiples of four; groups below limits::kUpdateGroups.
std::vector<UpdateChunk> make_update_chunks(std::span<const OptimizerSegment> segments);

// The work on blocks [first, first + count) of the table.
struct TotalsWork {
  const float* sums = nullptr;          // the reduced flat buffer
  const TotalsBlock* blocks = nullptr;  // from make_totals_blocks()
  BlockTotals* totals = nullptr;        // by block
  uint32_t first = 0;
  uint32_t count = 0;
};

// The blocks of grad_norm.h in their order, then the blocks of the statistics.
std::vector<TotalsBlock> make_totals_blocks(std::span<const NormRange> gradients,
                                            const NormRange& statistics);

}  // namespace lockstep::cuda
