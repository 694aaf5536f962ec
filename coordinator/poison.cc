// A step that kills: the owner of the same slot died twice while computing the same step, in
// different processes. A third try would kill a third one, so the run ends and names the samples.
#include <algorithm>

#include "coordinator/decide_internal.h"

namespace lockstep::coordinator {
namespace {

struct Culprit {
  SlotRun slots;
  MemberId first = 0;
  MemberId second = 0;
};

std::optional<Culprit> find_culprit(const std::vector<Casualty>& earlier,
                                    const std::vector<Casualty>& now) {
  for (const Casualty& a : earlier) {
    for (const Casualty& b : now) {
      const SlotRun both{std::max(a.slots.begin, b.slots.begin),
                         std::min(a.slots.end, b.slots.end)};
      if (both.begin < both.end && a.member != b.member) return Culprit{both, a.member, b.member};
    }
  }
  return std::nullopt;
}

std::string positions_of(const Turn& turn, Step step, const SlotRun& slots) {
  const data::RunShape& shape = turn.options.shape;
  const data::StepPlan plan = data::plan_step(shape, step);
  const uint64_t begin = data::slot_positions(plan, slots.begin, shape.slots).begin;
  const uint64_t end = data::slot_positions(plan, slots.end - 1, shape.slots).end;
  return "positions [" + std::to_string(begin) + ", " + std::to_string(end) + ") of epoch " +
         std::to_string(plan.epoch);
}

}  // namespace

std::optional<Reason> judge_poison(Turn& turn, Step next) {
  State& state = turn.state;
  if (state.casualties.empty() || next >= turn.options.total_steps) return std::nullopt;
  if (!state.deadly || state.deadly->step != next) state.deadly = DeadlyStep{next, {}};
  const auto culprit = find_culprit(state.deadly->casualties, state.casualties);
  for (const Casualty& casualty : state.casualties) state.deadly->casualties.push_back(casualty);
  if (!culprit) return std::nullopt;
  const SlotRun& slots = culprit->slots;
  end_run(turn, 65,
          "the step after step " + std::to_string(next) + " killed " +
              describe(state, turn.at(culprit->first)) + " and then " +
              describe(state, turn.at(culprit->second)) + ", both while they computed slots [" +
              std::to_string(slots.begin) + ", " + std::to_string(slots.end) +
              "): the samples at " + positions_of(turn, next, slots) +
              " are suspected, and no third worker is risked on them. Look at these samples and at "
              "the last words of both workers; " +
              what_remains(turn));
  return Reason::kEndedPoison;
}

}  // namespace lockstep::coordinator
