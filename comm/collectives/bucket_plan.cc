#include "comm/collectives/bucket_plan.h"

#include <string>

#include "comm/collectives/collective.h"

namespace lockstep {

Result<std::vector<uint64_t>> plan_buckets(std::span<const uint64_t> tensor_bounds,
                                           uint64_t elements, uint64_t bucket_bytes) {
  if (elements == 0 || elements % kCutElements != 0) {
    return Status(Code::kInternal, "bucket plan: " + std::to_string(elements) +
                                       " elements are no positive multiple of " +
                                       std::to_string(kCutElements));
  }
  std::vector<uint64_t> bounds = {0};
  uint64_t previous = 0;
  for (size_t i = 0; i < tensor_bounds.size(); ++i) {
    const uint64_t cut = tensor_bounds[i];
    if (cut < previous || cut > elements) {
      return Status(Code::kInternal, "bucket plan: tensor bound " + std::to_string(cut) +
                                         " does not ascend within " + std::to_string(elements) +
                                         " elements");
    }
    previous = cut;
    // A cut at the end of the last tensor would leave a bucket with only statistics and control:
    // one more exchange for nothing.
    if (i + 1 == tensor_bounds.size() || cut % kCutElements != 0) continue;
    const uint64_t held = cut - bounds.back();
    const bool is_full = held * sizeof(float) >= bucket_bytes;
    const bool last_is_a_bucket = i + 2 == tensor_bounds.size() && tensor_bounds.back() > cut &&
                                  (tensor_bounds.back() - cut) * sizeof(float) >= bucket_bytes;
    if (held > 0 && (is_full || last_is_a_bucket)) bounds.push_back(cut);
  }
  bounds.push_back(elements);
  return bounds;
}

}  // namespace lockstep
