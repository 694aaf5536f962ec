#include "worker/cuda/kernels/tables.h"

#include <algorithm>

#include "comm/base/check.h"
#include "comm/base/limits.h"

namespace lockstep::cuda {
namespace {

void append_blocks(const NormRange& range, bool in_norm, std::vector<TotalsBlock>* blocks) {
  for (uint64_t at = 0; at < range.length; at += kNormBlock) {
    const auto length = static_cast<uint32_t>(std::min(kNormBlock, range.length - at));
    blocks->push_back({range.start + at, length, in_norm ? 1u : 0u});
  }
}

}  // namespace

std::vector<UpdateChunk> make_update_chunks(std::span<const OptimizerSegment> segments) {
  std::vector<UpdateChunk> chunks;
  for (const OptimizerSegment& segment : segments) {
    LOCKSTEP_CHECK(segment.start % 4 == 0 && segment.length % 4 == 0,
                   "segments are cut at multiples of four elements");
    LOCKSTEP_CHECK(segment.group < limits::kUpdateGroups, "more groups than a kernel takes");
    for (uint64_t at = 0; at < segment.length; at += kUpdateChunk) {
      const auto length =
          static_cast<uint32_t>(std::min<uint64_t>(kUpdateChunk, segment.length - at));
      chunks.push_back({segment.start + at, length, static_cast<uint16_t>(segment.group),
                        static_cast<uint16_t>(segment.is_pruned)});
    }
  }
  return chunks;
}

std::vector<TotalsBlock> make_totals_blocks(std::span<const NormRange> gradients,
                                            const NormRange& statistics) {
  std::vector<TotalsBlock> blocks;
  for (const NormRange& range : gradients) append_blocks(range, true, &blocks);
  append_blocks(statistics, false, &blocks);
  return blocks;
}

}  // namespace lockstep::cuda
