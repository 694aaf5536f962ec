// Samples that kill: two processes ended while they had the same slot of the same step in hand. A
// third try would kill a third one, so the run ends and names the samples, or goes on without them.
// A process that hung and was evicted counts as one that ended. Two that hung in the same step, one
// after the other, end the run whatever they had in hand.
//
// A process writes down for its agent what it has in hand (comm/base/work_in_hand.h), and the agent
// tells it with the exit. So it does not matter how far a loader reads ahead, nor whether a worker
// is left: a run of one worker learns it from its second death. The process clears a slot when the
// sums of its step are there: every process that computed it lives.
#include <algorithm>
#include <set>

#include "comm/base/limits.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

struct Culprit {
  Step step = 0;
  std::optional<SlotInHand> slot;  // none: two hung in the step, at no slot in common
  std::string how;                 // "it killed ... and then ..."
  std::string stood;               // where the two that hung stood; empty: nobody hung
};

const SlotInHand* find_same(const Casualty& casualty, const SlotInHand& slot) {
  const auto& slots = casualty.in_hand.slots;
  const auto found = std::find_if(slots.begin(), slots.end(), [&](const SlotInHand& s) {
    return s.step == slot.step && s.slot == slot.slot;
  });
  return found == slots.end() ? nullptr : &*found;
}

std::string at_what(const Casualty& casualty, const SlotInHand& slot) {
  return casualty.who + (casualty.hang ? " hung" : "") + " while it " +
         (slot.is_read ? "read" : "computed") + " slot " + std::to_string(slot.slot);
}

std::string where_stood(const Casualty& a, const Casualty& b) {
  std::string text;
  for (const Casualty* casualty : {&a, &b})
    if (!casualty->stood.empty())
      text += "\nwhere " + casualty->who + " stood:\n" + casualty->stood;
  return text;
}

// The slot that both had in hand: what `b` read counts before what it computed.
std::optional<Culprit> find_common(const Casualty& a, const Casualty& b, Step next) {
  for (const SlotInHand& y : b.in_hand.slots) {
    const SlotInHand* x = y.step < next ? nullptr : find_same(a, y);
    if (x == nullptr) continue;
    const bool kills_again = a.hang && !b.hang;
    return Culprit{y.step, y,
                   (a.hang ? "" : "it killed ") + at_what(a, *x) + " and then " +
                       (kills_again ? "it killed " : "") + at_what(b, y),
                   where_stood(a, b)};
  }
  return std::nullopt;
}

std::string hung_at(const Turn& turn, const Casualty& casualty) {
  std::string text = casualty.who + " hung";
  const char* before = " with slot ";
  for (const SlotInHand& slot : casualty.in_hand.slots) {
    if (slot.step != casualty.hang->step) continue;
    text += before + std::to_string(slot.slot) + " in hand (samples at " +
            positions_of(turn, slot.step, {slot.slot, slot.slot + 1}) + ")";
    before = " and slot ";
  }
  return text;
}

// Both hung in one step, the second after another process had taken the first one's place.
std::optional<Culprit> find_hangs(const Turn& turn, const Casualty& a, const Casualty& b,
                                  Step next) {
  if (!a.hang || !b.hang || b.hang->member < a.hang->next_member) return std::nullopt;
  if (a.hang->step != b.hang->step || b.hang->step < next) return std::nullopt;
  return Culprit{b.hang->step, std::nullopt, hung_at(turn, a) + ", and then " + hung_at(turn, b),
                 where_stood(a, b)};
}

std::optional<Culprit> find_culprit(const Turn& turn, Step next) {
  const std::vector<Casualty>& casualties = turn.state.experience.casualties;
  std::optional<Culprit> hangs;
  for (size_t later = 1; later < casualties.size(); ++later) {
    for (size_t earlier = 0; earlier < later; ++earlier) {
      auto culprit = find_common(casualties[earlier], casualties[later], next);
      if (culprit) return culprit;
      if (!hangs) hangs = find_hangs(turn, casualties[earlier], casualties[later], next);
    }
  }
  return hangs;
}

bool is_suspect(const Casualty& casualty, Step next) {
  return !casualty.in_hand.slots.empty() || (casualty.hang && casualty.hang->step >= next);
}

void forget_before(std::vector<Casualty>& casualties, Step next) {
  for (Casualty& casualty : casualties) {
    std::erase_if(casualty.in_hand.slots, [next](const SlotInHand& s) { return s.step < next; });
  }
  std::erase_if(casualties, [next](const Casualty& c) { return !is_suspect(c, next); });
}

// Their deaths are explained; what else they had in hand is not suspected any more.
void forget_victims(std::vector<Casualty>& casualties, const SlotInHand& slot) {
  std::erase_if(casualties, [&](const Casualty& c) { return find_same(c, slot) != nullptr; });
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

void leave_out(Turn& turn, const SlotInHand& bad, const std::string& how, const std::string& what) {
  State& state = turn.state;
  // Nobody computes it in the generation that is being prepared, nor in any later one.
  const Generation last =
      state.run == RunState::kPrepared ? state.generation - 1 : state.last_generation;
  skip_slots(turn, {last, bad.step, {bad.slot, bad.slot + 1}, how});
  forget_victims(state.experience.casualties, bad);
  turn.note(LogLine::Level::kWarn, "samples_skipped",
            what + "; the run leaves them out (train.on_bad_samples: skip), time " +
                std::to_string(state.skips.size()) + " of at most " +
                std::to_string(most_skips(turn)) + " in this run, and training goes on");
}

// No slot is to blame alone: what hangs may be the script, its data processes, or the machine.
Reason end_of_hangs(Turn& turn, const Culprit& culprit) {
  end_run(turn, 70,
          "step " + std::to_string(culprit.step + 1) + ": " + culprit.how +
              ", and Lockstep does not replace a third worker; mend what hangs, then resume; " +
              what_remains(turn) + culprit.stood);
  return Reason::kEndedPoison;
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
  if (!is_suspect(casualty, 0)) return;
  if (casualties.size() == limits::kCasualties) casualties.erase(casualties.begin());
  casualties.push_back(std::move(casualty));
}

bool has_hung_in(const State& state, Step step) {
  const auto& casualties = state.experience.casualties;
  return std::any_of(casualties.begin(), casualties.end(),
                     [step](const Casualty& c) { return c.hang && c.hang->step == step; });
}

bool has_suspects(const Turn& turn) {
  const State& state = turn.state;
  const auto& casualties = state.experience.casualties;
  return std::any_of(casualties.begin(), casualties.end(), [&](const Casualty& c) {
    return std::any_of(c.in_hand.slots.begin(), c.in_hand.slots.end(),
                       [&](const SlotInHand& s) { return s.step >= state.completed; });
  });
}

bool may_tell(const Turn& turn, const std::string& node) {
  const State& state = turn.state;
  return has_agent(state, node) || turn.now_ms - state.started_ms <= turn.options.lease_ms;
}

bool awaits_word_of_dead(const Turn& turn) {
  const State& state = turn.state;
  std::set<Generation> untold;  // in which they died: two that died in one had other slots in hand
  for (const auto& [id, member] : state.members) {
    if (member.state != MemberState::kDead || is_told_of(member) || member.placed == 0) continue;
    if (turn.now_ms - member.disconnected_ms > turn.options.proof_ms) continue;
    const bool is_back = state.by_process.contains({member.node, member.pid});
    if (!is_back && may_tell(turn, member.node)) untold.insert(member.placed);
  }
  return untold.size() > 1 || (!untold.empty() && has_suspects(turn));
}

bool is_poisoned(const Turn& turn, Step next) {
  return find_culprit(turn, next).has_value();
}

std::optional<Reason> judge_poison(Turn& turn, Step next) {
  forget_before(turn.state.experience.casualties, next);
  while (const auto culprit = find_culprit(turn, next)) {
    if (!culprit->slot) return end_of_hangs(turn, *culprit);
    const SlotInHand& bad = *culprit->slot;
    const std::string what = "step " + std::to_string(bad.step + 1) + ": " + culprit->how +
                             ", the samples at " +
                             positions_of(turn, bad.step, {bad.slot, bad.slot + 1});
    if (may_skip(turn)) {
      leave_out(turn, bad, culprit->how, what);
      continue;
    }
    end_run(turn, 65,
            what + ", and Lockstep does not risk a third worker on them; " +
                what_to_do_about_samples(turn) +
                ". Look at these samples and at the last words of both workers; " +
                what_remains(turn) + culprit->stood);
    return Reason::kEndedPoison;
  }
  return std::nullopt;
}

}  // namespace lockstep::coordinator
