// A step that kills: the owner of the same slot died twice while computing the same step, in
// different processes. A third try would kill a third one, so the run ends and names the samples,
// or goes on without them.
//
// The first one may have died a few steps early, of reading ahead; whoever begins after a death
// reads nothing ahead for as many steps (data/read/loader.h), and so the second one dies in the
// step itself. Two deaths in different steps count as one cause only if both processes crashed of
// themselves: kills from outside come at any time.
#include <algorithm>

#include "comm/base/limits.h"
#include "coordinator/decide_internal.h"

namespace lockstep::coordinator {
namespace {

struct Culprit {
  SlotRun slots;
  MemberId first = 0;
  MemberId second = 0;
};

bool may_be_of_one_cause(const Casualty& a, const Casualty& b) {
  return a.step == b.step || (a.is_of_its_own && b.is_of_its_own);
}

std::optional<Culprit> find_culprit(const std::vector<Casualty>& earlier,
                                    const std::vector<Casualty>& now) {
  for (const Casualty& a : earlier) {
    for (const Casualty& b : now) {
      const SlotRun both{std::max(a.slots.begin, b.slots.begin),
                         std::min(a.slots.end, b.slots.end)};
      if (both.begin < both.end && a.member != b.member && may_be_of_one_cause(a, b)) {
        return Culprit{both, a.member, b.member};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Reason> judge_poison(Turn& turn, Step next) {
  State& state = turn.state;
  if (state.casualties.empty() || next >= turn.options.total_steps) return std::nullopt;
  std::vector<Casualty>& earlier = state.earlier_casualties;
  const Step read_ahead = std::max(1u, turn.options.job.data().prefetch_batches());
  std::erase_if(earlier,
                [&](const Casualty& c) { return c.step > next || c.step + read_ahead < next; });
  for (Casualty& casualty : state.casualties) casualty.step = next;
  const auto culprit = find_culprit(earlier, state.casualties);
  earlier.insert(earlier.end(), state.casualties.begin(), state.casualties.end());
  if (!culprit) return std::nullopt;
  const SlotRun& slots = culprit->slots;
  const std::string killed = "it killed " + describe(state, turn.at(culprit->first)) +
                             " and then " + describe(state, turn.at(culprit->second)) +
                             ", both while they computed slots [" + std::to_string(slots.begin) +
                             ", " + std::to_string(slots.end) + ")";
  const std::string what = "step " + std::to_string(next + 1) + ": " + killed +
                           ", the samples at " + positions_of(turn, next, slots);
  if (may_skip(turn)) {
    skip_slots(turn, {state.source_generation, next, slots, killed});
    earlier.clear();  // who dies in it from here on dies of other samples
    turn.note(LogLine::Level::kWarn, "samples_skipped",
              what + "; they are left out (train.on_bad_samples: skip), which is time " +
                  std::to_string(state.skips.size()) + " of at most " +
                  std::to_string(limits::kSkips) + " in this run, and training goes on");
    return std::nullopt;
  }
  end_run(turn, 65,
          what + ", and no third worker is risked on them; " + what_to_do_about_samples(turn) +
              ". Look at these samples and at the last words of both workers; " +
              what_remains(turn));
  return Reason::kEndedPoison;
}

}  // namespace lockstep::coordinator
