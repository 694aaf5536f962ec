#include "worker/engine/self_check.h"

namespace lockstep {
namespace {

uint32_t owner_of(uint32_t slot, std::span<const SlotRun> slot_runs) {
  uint32_t rank = 0;
  while (slot >= slot_runs[rank].end) ++rank;
  return rank;
}

}  // namespace

std::optional<CheckPlan> plan_check(const wire::JobSpec& job, const PossibleEnds& ends, Step step,
                                    std::span<const SlotRun> slot_runs, uint32_t buckets) {
  const auto turn = check_after(step + 1, job, ends);
  if (!turn || job.comm().numerics() != "exact") return std::nullopt;
  CheckPlan plan;
  plan.slot = static_cast<uint32_t>(*turn % slot_runs.back().end);
  plan.slot_owner = owner_of(plan.slot, slot_runs);
  plan.bucket = static_cast<uint32_t>(*turn % buckets);
  plan.sum_owner = static_cast<uint32_t>(*turn / buckets % slot_runs.size());
  return plan;
}

uint64_t hash_gradients(const FlatLayout& layout, const float* region) {
  CheckHash hash;
  for (size_t i = 0; i < layout.parameters.size(); ++i) {
    if (!layout.is_trained(i)) continue;
    const FlatTensor& tensor = layout.parameters[i];
    hash.update(region + tensor.begin, tensor.elements * sizeof(float));
  }
  return hash.value();
}

}  // namespace lockstep
