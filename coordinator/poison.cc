// Samples that kill: two processes ended while they had the same slot of the same step in hand. A
// third try would kill a third one, so the run ends and names the samples, or goes on without them.
//
// What a process had in hand it has written down for its agent (comm/base/work_in_hand.h), which
// tells it with the exit. So it counts neither how far a loader reads ahead nor whether anybody is
// left: a run of one worker learns it from its second death. A slot is cleared when its step is
// applied: whoever computed it lives.
#include <algorithm>

#include "comm/base/limits.h"
#include "coordinator/decide_internal.h"

namespace lockstep::coordinator {
namespace {

struct Culprit {
  Step step = 0;
  uint32_t slot = 0;
  std::string killed;  // "it killed ... and then ..."
};

bool are_same_samples(const SlotInHand& a, const SlotInHand& b) {
  return a.step == b.step && a.slot == b.slot;
}

std::string at_what(const Casualty& casualty, const SlotInHand& slot) {
  return casualty.who + " while it " + (slot.is_read ? "read" : "computed") + " slot " +
         std::to_string(slot.slot);
}

// The slot that both had in hand, as `b` had it: what was read counts before what was computed.
const SlotInHand* common(const Casualty& a, const Casualty& b, Step next) {
  for (const SlotInHand& y : b.in_hand.slots) {
    const bool is_common = std::any_of(a.in_hand.slots.begin(), a.in_hand.slots.end(),
                                       [&](const auto& x) { return are_same_samples(x, y); });
    if (is_common && y.step >= next) return &y;
  }
  return nullptr;
}

std::optional<Culprit> find_culprit(const std::vector<Casualty>& casualties, Step next) {
  for (size_t later = 1; later < casualties.size(); ++later) {
    const Casualty& b = casualties[later];
    for (size_t earlier = 0; earlier < later; ++earlier) {
      const Casualty& a = casualties[earlier];
      const SlotInHand* y = common(a, b, next);
      if (y == nullptr) continue;
      const auto x = std::find_if(a.in_hand.slots.begin(), a.in_hand.slots.end(),
                                  [&](const auto& s) { return are_same_samples(s, *y); });
      return Culprit{y->step, y->slot,
                     "it killed " + at_what(a, *x) + " and then " + at_what(b, *y)};
    }
  }
  return std::nullopt;
}

void forget_before(std::vector<Casualty>& casualties, Step next) {
  for (Casualty& casualty : casualties) {
    std::erase_if(casualty.in_hand.slots, [next](const SlotInHand& s) { return s.step < next; });
  }
  std::erase_if(casualties, [](const Casualty& c) { return c.in_hand.slots.empty(); });
}

// Their deaths are explained; what else they had in hand is not suspected any more.
void forget_victims(std::vector<Casualty>& casualties, const Culprit& culprit) {
  std::erase_if(casualties, [&](const Casualty& c) {
    return std::any_of(c.in_hand.slots.begin(), c.in_hand.slots.end(), [&](const SlotInHand& s) {
      return s.step == culprit.step && s.slot == culprit.slot;
    });
  });
}

// It had in hand what is left out by now.
bool is_explained(const State& state, const Casualty& casualty) {
  return std::any_of(state.skips.begin(), state.skips.end(), [&](const SkipEntry& skip) {
    return std::any_of(
        casualty.in_hand.slots.begin(), casualty.in_hand.slots.end(), [&](const auto& s) {
          return s.step == skip.step && skip.slots.begin <= s.slot && s.slot < skip.slots.end;
        });
  });
}

void leave_out(Turn& turn, const Culprit& culprit, const std::string& what) {
  State& state = turn.state;
  // Nobody computes it in the generation that is being prepared, nor in any later one.
  const Generation last =
      state.run == RunState::kPrepared ? state.generation - 1 : state.last_generation;
  skip_slots(turn, {last, culprit.step, {culprit.slot, culprit.slot + 1}, culprit.killed});
  forget_victims(state.experience.casualties, culprit);
  turn.note(LogLine::Level::kWarn, "samples_skipped",
            what + "; they are left out (train.on_bad_samples: skip), which is time " +
                std::to_string(state.skips.size()) + " of at most " +
                std::to_string(limits::kSkips) + " in this run, and training goes on");
}

}  // namespace

void note_casualty(Turn& turn, Casualty casualty) {
  std::vector<Casualty>& casualties = turn.state.experience.casualties;
  const bool is_known = std::any_of(casualties.begin(), casualties.end(), [&](const Casualty& c) {
    return c.in_hand.process == casualty.in_hand.process;
  });
  if (is_known || is_explained(turn.state, casualty)) return;
  std::erase_if(casualty.in_hand.slots, [&](const SlotInHand& s) {
    return s.step >= turn.options.total_steps || s.slot >= turn.options.shape.slots;
  });
  if (casualty.in_hand.slots.empty()) return;
  if (casualties.size() == limits::kCasualties) casualties.erase(casualties.begin());
  casualties.push_back(std::move(casualty));
}

bool is_poisoned(const Turn& turn, Step next) {
  return find_culprit(turn.state.experience.casualties, next).has_value();
}

std::optional<Reason> judge_poison(Turn& turn, Step next) {
  std::vector<Casualty>& casualties = turn.state.experience.casualties;
  forget_before(casualties, next);
  while (const auto culprit = find_culprit(casualties, next)) {
    const SlotRun slots{culprit->slot, culprit->slot + 1};
    const std::string what = "step " + std::to_string(culprit->step + 1) + ": " + culprit->killed +
                             ", the samples at " + positions_of(turn, culprit->step, slots);
    if (may_skip(turn)) {
      leave_out(turn, *culprit, what);
      continue;
    }
    end_run(turn, 65,
            what + ", and no third worker is risked on them; " + what_to_do_about_samples(turn) +
                ". Look at these samples and at the last words of both workers; " +
                what_remains(turn));
    return Reason::kEndedPoison;
  }
  return std::nullopt;
}

}  // namespace lockstep::coordinator
