// Samples that kill: two processes ended while they had the same slot of the same step in hand. A
// third try would kill a third one, so the run ends and names the samples, or goes on without them.
// A process that hung and was evicted counts as one that ended. Two that hung in the same step, one
// after the other, end the run whatever they had in hand.
//
// A process writes down for its agent what it has in hand (comm/base/work_in_hand.h), and the agent
// tells it with the exit. So it does not matter how far a loader reads ahead, nor whether a worker
// is left: a run of one worker learns it from its second death. The process clears a slot when the
// sums of its step are there: every process that computed it lives.
//
// A process may also end because the script's own code raised an error in the loop's body
// (Code::kRaised). Then samples are at fault, or the script is:
//
//   raised twice, at one slot of a step           samples, as far as can be told
//   raised twice, at two slots of a step          the script
//   raised at a slot of a step that goes without  the script, and what was left out comes back
//   another slot, since two raised the same there
//
// Two errors are the same if their types and the first lines of their messages are. Slots have no
// samples in common, so the same error at two of them is not due to samples.
//
// INVARIANTS
//  S1 The run ends with such a second error, with code 64 and the script's traceback, whatever
//     train.on_bad_samples says.
//  S2 No slot is left out of a step that has raised the same at two slots.
//  S3 The error is in the reason of a SkipEntry, so every later coordinator knows it. Casualties
//     are not journalled: a coordinator that dies between two errors needs one more of them.
//
// Two slots of a step may also have bad samples on which a model raises alike. The run then ends,
// too. Such a pair is rare, and a run that leaves good samples out and ends well deceives.
//
// An error of the data set (__getitem__, collate) does not come here: it names its sample, and ends
// the run with code 65. A process that a signal ends, or that hangs, has raised nothing.
#include <algorithm>
#include <set>
#include <string_view>

#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/base/text/utf8.h"
#include "comm/run/plan/step_plan.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

constexpr std::string_view kBothSaid = "; both said: ";

struct Culprit {
  Step step = 0;
  std::optional<SlotInHand> slot;  // none: two hung in the step, at no slot in common
  std::string how;                 // "it killed ... and then ..."
  std::string stood;               // where those that hung stood, or the traceback of `error`
  std::string error;               // that both raised; empty: none
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
    if (casualty->hang && !casualty->stood.empty())
      text += "\nwhere " + casualty->who + " stood:\n" + casualty->stood;
  return text;
}

// The slot that both had in hand: what `b` read counts before what it computed.
std::optional<Culprit> find_common(const Casualty& a, const Casualty& b, Step next) {
  for (const SlotInHand& y : b.in_hand.slots) {
    const SlotInHand* x = y.step < next ? nullptr : find_same(a, y);
    if (x == nullptr) continue;
    const bool kills_again = a.hang && !b.hang;
    const bool is_same = !a.error.empty() && a.error == b.error;
    return Culprit{y.step, y,
                   (a.hang ? "" : "it killed ") + at_what(a, *x) + " and then " +
                       (kills_again ? "it killed " : "") + at_what(b, y),
                   is_same ? b.stood : where_stood(a, b), is_same ? b.error : ""};
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
                 where_stood(a, b), ""};
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

// The deaths are explained. The coordinator no longer suspects what else these processes had in
// hand.
void forget_victims(std::vector<Casualty>& casualties, const SlotInHand& slot) {
  std::erase_if(casualties, [&](const Casualty& c) { return find_same(c, slot) != nullptr; });
}

// The run leaves out by now what the process had in hand.
bool is_explained(const State& state, const Casualty& casualty) {
  return std::any_of(state.skips.begin(), state.skips.end(), [&](const SkipEntry& skip) {
    return std::any_of(
        casualty.in_hand.slots.begin(), casualty.in_hand.slots.end(), [&](const auto& s) {
          return s.step == skip.step && skip.slots.begin <= s.slot && s.slot < skip.slots.end;
        });
  });
}

// The reason of a skip where two processes raised `error`, which may be empty; and back.
std::string with_error(const std::string& how, const std::string& error) {
  return error.empty() ? how : how + std::string(kBothSaid) + error;
}

std::string error_in(const SkipEntry& skip) {
  const size_t at = skip.reason.find(kBothSaid);
  return at == std::string::npos ? "" : skip.reason.substr(at + kBothSaid.size());
}

void leave_out(Turn& turn, const SlotInHand& bad, const std::string& how, const std::string& what) {
  State& state = turn.state;
  // No worker computes the slot in the generation that is being prepared, nor in any later one.
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

std::string first_of(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && is_inside_utf8_character(text[most])) --most;
  return text.substr(0, most);
}

std::string last_of(std::string text, size_t most) {
  if (text.size() <= most) return text;
  size_t begin = text.size() - most;
  while (begin < text.size() && is_inside_utf8_character(text[begin])) ++begin;
  return "\n" + text.substr(begin);
}

// The slot in which it raised: the one that it computed. A loader may read ahead of it.
const SlotInHand* raised_at(const Casualty& casualty, Step next) {
  if (casualty.error.empty()) return nullptr;
  const auto& slots = casualty.in_hand.slots;
  const auto found = std::find_if(slots.begin(), slots.end(), [next](const SlotInHand& s) {
    return !s.is_read && s.step >= next;
  });
  return found == slots.end() ? nullptr : &*found;
}

// Slots that are left out of the step's batch because of `error` count again.
void take_back_skips(Turn& turn, Step step, const std::string& error) {
  const RunShape& shape = turn.options.shape;
  std::erase_if(turn.state.skips, [&](const SkipEntry& skip) {
    const bool is_of_batch = first_turn(shape, skip.step) == first_turn(shape, step);
    if (!is_of_batch || error_in(skip) != error) return false;
    turn.persist(UnskipEntry{skip.step, skip.slots});
    return true;
  });
}

std::string at_slot(uint32_t slot) {
  return " at slot " + std::to_string(slot);
}

// Names the worker that raised the same error at another slot of the step. Empty: none did.
std::string said_before(const Turn& turn, const Casualty& casualty, const SlotInHand& at) {
  for (const Casualty& other : turn.state.experience.casualties) {
    const SlotInHand* slot = raised_at(other, at.step);
    const bool is_same = slot != nullptr && slot->step == at.step && other.error == casualty.error;
    if (is_same && slot->slot != at.slot) return other.who + at_slot(slot->slot);
  }
  for (const SkipEntry& skip : turn.state.skips)
    if (skip.step == at.step && error_in(skip) == casualty.error)
      return "two workers" + at_slot(skip.slots.begin) + ", whose samples count again,";
  return {};
}

Reason end_of_script(Turn& turn, const Casualty& casualty, const SlotInHand& at,
                     const std::string& before) {
  take_back_skips(turn, at.step, casualty.error);
  end_run(turn, exit_code(Status(Code::kUsage, "")),
          "step " + std::to_string(at.step + 1) + ": " + casualty.error + "; " + casualty.who +
              " raised it" + at_slot(at.slot) + ", and " + before +
              " before. These slots have no samples in common, so the script is at fault: mend it, "
              "then resume; " +
              what_remains(turn) + casualty.stood);
  return Reason::kEndedWorkerFailed;
}

}  // namespace

void note_error(const wire::Leave& message, Casualty& casualty) {
  if (message.code() != static_cast<uint32_t>(Code::kRaised)) return;
  auto [error, trace] = split_line(message.message());
  casualty.error = first_of(std::move(error), limits::kErrorBytes);
  casualty.stood = last_of(std::move(trace), limits::kTraceBytes);
}

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
      leave_out(turn, bad, with_error(culprit->how, culprit->error), what);
      continue;
    }
    const std::string& error = culprit->error;
    end_run(turn, 65,
            what + ", and Lockstep does not risk a third worker on them; " +
                (error.empty()
                     ? ""
                     : "both said: " + error + "; if all samples raise it, mend the script; ") +
                what_to_do_about_samples(turn) +
                ". Look at these samples and at the last words of both workers; " +
                what_remains(turn) + culprit->stood);
    return Reason::kEndedPoison;
  }
  return std::nullopt;
}

std::optional<Reason> judge_raised(Turn& turn) {
  const auto& casualties = turn.state.experience.casualties;
  for (auto it = casualties.rbegin(); it != casualties.rend(); ++it) {
    const SlotInHand* at = raised_at(*it, turn.state.completed);
    if (at == nullptr) continue;
    const std::string before = said_before(turn, *it, *at);
    if (!before.empty()) return end_of_script(turn, *it, *at, before);
  }
  return std::nullopt;
}

}  // namespace lockstep::coordinator
