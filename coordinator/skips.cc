#include "coordinator/skips.h"

#include <algorithm>

#include "comm/base/limits.h"
#include "comm/base/planted_bug.h"
#include "coordinator/corruption.h"
#include "coordinator/decide_internal.h"

namespace lockstep::coordinator {
namespace {

// The lineage still has the step as it was done with these slots.
bool is_cut_due(const JournalContents& contents, const SkipEntry& skip) {
  const LedgerRow* row = row_of(contents.ledger, skip.step);
  return row != nullptr && row->generation <= skip.generation;
}

}  // namespace

data::SkipSet skips_in(std::span<const SkipEntry> skips, Generation generation) {
  data::SkipSet set;
  for (const SkipEntry& skip : skips) {
    if (holds_in(skip, generation)) set.add(skip.step, skip.slots.begin, skip.slots.end);
  }
  return set;
}

uint64_t samples_in(std::span<const SkipEntry> skips, Generation generation, Step step,
                    const data::RunShape& shape) {
  data::SkipSet set;
  for (const SkipEntry& skip : skips) {
    const bool holds = holds_in(skip, generation) && !LOCKSTEP_BUG(kSkippedCountExpected);
    if (skip.step == step && holds) set.add(step, skip.slots.begin, skip.slots.end);
  }
  return set.counted_samples(data::plan_step(shape, step), step, shape.slots);
}

std::optional<Step> newest_sound(const JournalContents& contents) {
  std::optional<Step> newest = newest_trusted(contents);
  for (const SkipEntry& skip : contents.skips) {
    if (is_cut_due(contents, skip)) newest = std::min(newest.value_or(skip.step), skip.step);
  }
  return newest;
}

void fill_skips(const State& state, wire::Start* start) {
  if (LOCKSTEP_BUG(kSkipNotTold)) return;
  for (const SkipEntry& skip : state.skips) {
    wire::SkippedSlots* slots = start->add_skipped();
    slots->set_step(skip.step);
    slots->mutable_slots()->set_begin(skip.slots.begin);
    slots->mutable_slots()->set_end(skip.slots.end);
  }
}

bool may_skip(const Turn& turn) {
  return turn.options.job.train().on_bad_samples() == "skip" &&
         turn.state.skips.size() < limits::kSkips;
}

void skip_slots(Turn& turn, SkipEntry entry) {
  std::vector<SkipEntry>& skips = turn.state.skips;
  turn.persist(entry);
  const auto after = std::upper_bound(
      skips.begin(), skips.end(), entry, [](const SkipEntry& a, const SkipEntry& b) {
        return std::pair(a.step, a.slots.begin) < std::pair(b.step, b.slots.begin);
      });
  skips.insert(after, std::move(entry));
}

std::string what_to_do_about_samples(const Turn& turn) {
  if (turn.state.skips.size() >= limits::kSkips) {
    return "the run has left out samples " + std::to_string(limits::kSkips) +
           " times already and leaves out no more: have a look at the data, the learning rate and "
           "the machines";
  }
  return "to leave these samples out, add train.on_bad_samples=skip to the command that goes on";
}

std::string positions_of(const Turn& turn, Step step, const SlotRun& slots) {
  const data::RunShape& shape = turn.options.shape;
  const data::StepPlan plan = data::plan_step(shape, step);
  const uint64_t begin = data::slot_positions(plan, slots.begin, shape.slots).begin;
  const uint64_t end = data::slot_positions(plan, slots.end - 1, shape.slots).end;
  return "positions [" + std::to_string(begin) + ", " + std::to_string(end) + ") of epoch " +
         std::to_string(plan.epoch + 1);
}

}  // namespace lockstep::coordinator
