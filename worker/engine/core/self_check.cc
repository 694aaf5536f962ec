#include "worker/engine/core/self_check.h"

#include <cstdlib>

namespace lockstep {
namespace {

uint32_t owner_of(uint32_t slot, std::span<const SlotRun> slot_runs) {
  uint32_t rank = 0;
  while (slot >= slot_runs[rank].end) ++rank;
  return rank;
}

}  // namespace

std::optional<CheckPlan> plan_check(const wire::JobSpec& job, Step step,
                                    std::span<const SlotRun> slot_runs, uint32_t buckets) {
  const uint64_t every = job.train().check_every();
  if (every == 0 || (step + 1) % every != 0 || slot_runs.size() < 2 ||
      job.comm().numerics() != "exact") {
    return std::nullopt;
  }
  const uint64_t turn = (step + 1) / every - 1;
  CheckPlan plan;
  plan.slot = static_cast<uint32_t>(turn % slot_runs.back().end);
  plan.slot_owner = owner_of(plan.slot, slot_runs);
  plan.bucket = static_cast<uint32_t>(turn % buckets);
  plan.sum_owner = static_cast<uint32_t>(turn / buckets % slot_runs.size());
  return plan;
}

// The first half of the hash.
uint64_t CheckHash::value() const {
  return std::strtoull(hash_.hex().substr(0, 16).c_str(), nullptr, 16);
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

uint64_t hash_of(std::span<const StateTensor> state) {
  CheckHash hash;
  for (const StateTensor& tensor : state) hash.update(tensor.data, tensor.bytes);
  return hash.value();
}

}  // namespace lockstep
