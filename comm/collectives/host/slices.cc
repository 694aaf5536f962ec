#include "comm/collectives/host/slices.h"

#include <algorithm>

#include "comm/base/byte_units.h"

namespace lockstep::host {
namespace {

// Up to this size one phase that reads P times the bytes should beat two phases: a handful of cache
// misses against one more round of flags. Not tuned for more than two ranks.
constexpr uint64_t kDirectBytes = 32 * kKib;
constexpr uint64_t kSliceCutElements = 64;
static_assert(kSliceCutElements % kCutElements == 0);

}  // namespace

Algorithm choose_algorithm(uint32_t world_size, uint64_t bytes, bool two_on_one_host) {
  return bytes <= kDirectBytes || two_on_one_host || world_size == 1 ? Algorithm::kDirect
                                                                     : Algorithm::kSlices;
}

ElementRange slice_of(const ElementRange& range, uint32_t rank, uint32_t world_size) {
  const uint64_t even = (range.size() + world_size - 1) / world_size;
  const uint64_t length = (even + kSliceCutElements - 1) / kSliceCutElements * kSliceCutElements;
  const uint64_t begin = std::min(range.begin + rank * length, range.end);
  return {begin, std::min(begin + length, range.end)};
}

}  // namespace lockstep::host
