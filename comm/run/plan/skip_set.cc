#include "comm/run/plan/skip_set.h"

#include <algorithm>
#include <iterator>

namespace lockstep {

void SkipSet::add(Step step, uint32_t begin, uint32_t end) {
  if (begin >= end) return;
  Runs& runs = by_step_[step];
  auto it = runs.upper_bound(begin);
  if (it != runs.begin() && std::prev(it)->second >= begin) --it;
  while (it != runs.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    it = runs.erase(it);
  }
  runs[begin] = end;
}

bool SkipSet::contains(Step step, uint32_t slot) const {
  const auto found = by_step_.find(step);
  if (found == by_step_.end()) return false;
  const auto after = found->second.upper_bound(slot);
  return after != found->second.begin() && std::prev(after)->second > slot;
}

std::vector<bool> SkipSet::active_slots(const StepPlan& plan, Step step, uint32_t slots) const {
  std::vector<bool> active = non_empty_slots(plan, slots);
  const auto found = by_step_.find(step);
  if (found == by_step_.end()) return active;
  for (const auto& [begin, end] : found->second) {
    for (uint32_t slot = begin; slot < std::min(end, slots); ++slot) active[slot] = false;
  }
  return active;
}

uint64_t SkipSet::counted_samples(const StepPlan& plan, Step step, uint32_t slots) const {
  const auto found = by_step_.find(step);
  if (found == by_step_.end()) return plan.samples;
  uint64_t samples = plan.samples;
  for (const auto& [begin, end] : found->second) {
    if (begin >= slots) continue;
    samples -= slot_positions(plan, std::min(end, slots) - 1, slots).end -
               slot_positions(plan, begin, slots).begin;
  }
  return samples;
}

}  // namespace lockstep
