#include "coordinator/state/skips.h"

#include <algorithm>

#include "comm/base/planted_bug.h"
#include "coordinator/state/corruption.h"

namespace lockstep::coordinator {
namespace {

// The lineage still has the step as it was done with these slots.
bool is_cut_due(const JournalContents& contents, const SkipEntry& skip) {
  const LedgerRow* row = row_of(contents.ledger, skip.step);
  return row != nullptr && row->generation <= skip.generation;
}

}  // namespace

SkipSet skips_in(std::span<const SkipEntry> skips, Generation generation) {
  SkipSet set;
  for (const SkipEntry& skip : skips) {
    if (holds_in(skip, generation)) set.add(skip.step, skip.slots.begin, skip.slots.end);
  }
  return set;
}

uint64_t samples_in(std::span<const SkipEntry> skips, Generation generation, Step step,
                    const RunShape& shape) {
  SkipSet set;
  for (const SkipEntry& skip : skips) {
    const bool holds = holds_in(skip, generation) && !LOCKSTEP_BUG(kSkippedCountExpected);
    if (skip.step == step && holds) set.add(step, skip.slots.begin, skip.slots.end);
  }
  return set.counted_samples(plan_step(shape, step), step, shape.slots);
}

std::optional<Step> newest_sound(const JournalContents& contents) {
  std::optional<Step> newest = newest_trusted(contents);
  for (const SkipEntry& skip : contents.skips) {
    if (is_cut_due(contents, skip)) newest = std::min(newest.value_or(skip.step), skip.step);
  }
  return newest;
}

}  // namespace lockstep::coordinator
