// Leaves the slots of bad samples out of the next generation (skips.h).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/limits.h"
#include "comm/base/planted_bug.h"
#include "comm/run/plan/step_plan.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

bool has_used_all_skips(const Turn& turn) {
  return turn.state.skips.size() >= most_skips(turn);
}

}  // namespace

size_t most_skips(const Turn& turn) {
  return limits::kSkips * turn.options.shape.turns;
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
  return turn.options.job.train().on_bad_samples() == "skip" && !has_used_all_skips(turn);
}

void skip_slots(Turn& turn, SkipEntry entry) {
  std::vector<SkipEntry>& skips = turn.state.skips;
  const RunShape& shape = turn.options.shape;
  const Step end =
      LOCKSTEP_BUG(kSkipOfOneTurn) ? entry.step + 1 : first_turn(shape, entry.step) + shape.turns;
  for (; entry.step < end; ++entry.step) {
    turn.persist(entry);
    const auto after = std::upper_bound(
        skips.begin(), skips.end(), entry, [](const SkipEntry& a, const SkipEntry& b) {
          return std::pair(a.step, a.slots.begin) < std::pair(b.step, b.slots.begin);
        });
    skips.insert(after, entry);
  }
}

std::string what_to_do_about_samples(const Turn& turn) {
  if (has_used_all_skips(turn)) {
    return "the run has left out samples " + std::to_string(most_skips(turn)) +
           " times, which is the limit: check the data, the learning rate and the machines";
  }
  return "to leave these samples out, add train.on_bad_samples=skip to the command that goes on";
}

std::string positions_of(const Turn& turn, Step step, const SlotRun& slots) {
  const RunShape& shape = turn.options.shape;
  const StepPlan plan = plan_step(shape, step);
  const uint64_t begin = slot_positions(plan, slots.begin, shape.slots).begin;
  const uint64_t end = slot_positions(plan, slots.end - 1, shape.slots).end;
  return "positions [" + std::to_string(begin) + ", " + std::to_string(end) + ") of epoch " +
         std::to_string(plan.epoch + 1);
}

}  // namespace lockstep::coordinator
