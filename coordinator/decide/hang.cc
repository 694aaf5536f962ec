// Finds the members that hang. Heartbeats come from a thread of their own, so a worker that is
// stuck is not silent. They carry (step, phase, bucket), so the culprit is the member that is
// behind: all others wait for it. Where GPUs sum, `bucket` is what the GPU has finished. Every host
// enqueues the whole step, also after a kernel that never ends, so what hosts have enqueued blames
// no member.
//
// In an evaluation `bucket` counts scored batches. They are progress, and blame no member: shares
// are not equal, and a member that is done with its own waits.
//
// If no member is behind, the cause may be outside of them: the same members try once more. If that
// does not help, or only one worker is there, they hang themselves, and the coordinator replaces
// them: a thread that is stuck never comes back to be asked again. It also replaces a member that
// stands in a step in which others hung before; the second hang in a step ends the run (poison.cc).
// A member that does not even answer when asked once more is stuck in its apply, and hangs, too
// (judge.cc).
//
// While a debugger has stopped a worker's script, all members wait for a person, and none hangs.
#include <algorithm>
#include <tuple>

#include "comm/base/limits.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

// A checkpoint makes no progress that heartbeats could show, a batch of an evaluation may take
// long, and the first step of a generation warms everything up.
constexpr int64_t kPatience = 4;
// A step may take so many times as long as the slowest before it, however short cluster.hang_s is.
constexpr int64_t kSlowSteps = 8;

std::string place_text(const MemberProgress& at) {
  constexpr const char* kNames[] = {"training", "evaluating", "writing a checkpoint", "done",
                                    "in the script's code between two epochs"};
  const std::string text =
      std::string(kNames[static_cast<size_t>(at.phase)]) + " after step " + std::to_string(at.step);
  if (at.phase == Phase::kEval || at.phase == Phase::kEdge) return text;
  return text + ", " + std::to_string(at.bucket) + " buckets done";
}

// A GPU that was given more buckets than it finished: a kernel of it is stuck, not its host.
std::string device_text(const State& state, const std::vector<MemberId>& behind) {
  const Member& member = state.members.at(behind.front());
  if (member.enqueued <= member.progress.bucket) return "";
  return "; its GPU has finished " + std::to_string(member.progress.bucket) + " of " +
         std::to_string(member.enqueued) + " buckets that it was given";
}

struct Front {
  std::vector<MemberId> behind;
  size_t members = 0;
  MemberProgress last;   // where those behind are
  MemberProgress first;  // where the foremost is
};

Front front_of(const State& state) {
  Front front;
  for (MemberId id : state.ranks) {
    const Member& member = state.members.at(id);
    if (member.state != MemberState::kTraining) continue;
    MemberProgress at = member.progress;
    if (at.phase == Phase::kEval) at.bucket = 0;
    if (front.members++ == 0) front.last = front.first = at;
    if (at < front.last) front.behind.clear();
    front.last = std::min(front.last, at);
    front.first = std::max(front.first, at);
    if (at == front.last) front.behind.push_back(id);
  }
  return front;
}

}  // namespace

void evict_hung(Turn& turn, Member& member, Step step, const std::string& why) {
  Experience& experience = turn.state.experience;
  if (experience.hung.size() == limits::kCasualties) experience.hung.erase(experience.hung.begin());
  experience.hung[{member.node, member.pid}] = {step, member.id, turn.state.next_member,
                                                describe(turn.state, member)};
  wire::Envelope envelope;
  envelope.mutable_evict()->set_reason(why);
  envelope.mutable_evict()->set_save_stack(true);
  turn.send(member.connection, std::move(envelope));
  declare_dead(turn, member);
}

void begin_progress(State& state, int64_t now_ms) {
  state.progress_ms = now_ms;
  state.front_step = state.resume.step;
  state.front_ms = now_ms;
  state.slowest_ms = 0;
}

void note_progress(Turn& turn, Member& member, const MemberProgress& at) {
  // An evaluation that is made again counts its batches from 0 again.
  const bool is_same_evaluation = at.phase == Phase::kEval && member.progress.phase == at.phase &&
                                  member.progress.step == at.step;
  if (at <= member.progress && (at == member.progress || !is_same_evaluation)) return;
  State& state = turn.state;
  member.progress = at;
  state.progress_ms = turn.now_ms;
  if (at.step <= state.front_step) return;
  state.slowest_ms = std::max<int64_t>({1, state.slowest_ms, turn.now_ms - state.front_ms});
  state.front_step = at.step;
  state.front_ms = turn.now_ms;
}

bool is_about_to_tell(const State& state, const Member& member) {
  return !member.has_exited && state.experience.hung.contains({member.node, member.pid});
}

bool is_paused(const State& state) {
  return std::any_of(state.ranks.begin(), state.ranks.end(), [&state](MemberId id) {
    const Member& member = state.members.at(id);
    return member.is_paused && member.state != MemberState::kDead;
  });
}

void note_pause(Turn& turn, Member& member, bool is_paused) {
  if (member.is_paused == is_paused) return;
  member.is_paused = is_paused;
  if (is_paused)
    return turn.log(LogLine::Level::kWarn, "worker_paused",
                    "a debugger has stopped " + describe(turn.state, member) +
                        "; the run waits until it goes on");
  turn.state.progress_ms = turn.now_ms;  // the time before counts against no member
  turn.state.front_ms = turn.now_ms;
  turn.state.prepared_ms = turn.now_ms;
  turn.log(LogLine::Level::kInfo, "worker_continues",
           describe(turn.state, member) + " goes on after a debugger had stopped it");
}

bool is_busy_in_edge(const Turn& turn, const Member& member) {
  if (member.phase != Phase::kEdge || turn.state.stood_still) return false;
  const bool is_heard =
      member.connection != 0 && turn.now_ms - member.heard_ms <= turn.options.lease_ms;
  return is_heard && (turn.options.hang_ms == 0 ||
                      turn.now_ms - turn.state.prepared_ms <= kPatience * turn.options.hang_ms);
}

std::optional<Reason> judge_hang(Turn& turn) {
  State& state = turn.state;
  if (is_paused(state)) return std::nullopt;
  if (turn.options.hang_ms == 0 || state.run != RunState::kStarted) return std::nullopt;
  const int64_t still_ms = turn.now_ms - state.progress_ms;
  if (still_ms <= turn.options.hang_ms) return std::nullopt;
  const Front front = front_of(state);
  const bool is_quiet = front.last.phase != Phase::kTrain || front.first.phase != Phase::kTrain ||
                        state.slowest_ms == 0;
  const int64_t limit_ms =
      std::max((is_quiet ? kPatience : 1) * turn.options.hang_ms, kSlowSteps * state.slowest_ms);
  if (front.members == 0 || still_ms <= limit_ms) return std::nullopt;
  state.progress_ms = turn.now_ms;
  const std::string since = "for " + std::to_string(still_ms / 1000) + " s (cluster.hang_s is " +
                            std::to_string(turn.options.hang_ms / 1000) + ")";
  // If more than half are behind, they wait for something that is not a member.
  const bool is_nobodys = front.last == front.first || front.behind.size() * 2 > front.members;
  const bool are_stuck =
      front.members == 1 || has_tried_again(state) || has_hung_in(state, front.last.step);
  if (is_nobodys && !are_stuck) {
    const Reason reason =
        try_again(turn, "no worker made any progress " + since + ", " + place_text(front.last));
    if (state.run == RunState::kPrepared) state.stood_still = front.last.step;
    return reason;
  }
  const bool are_all = front.behind.size() == front.members;
  const std::string what =
      describe(state, front.behind) +
      (front.behind.size() == 1 ? " hangs: no progress " : " hang: no progress ") + since + ", " +
      place_text(front.last) + (are_all ? "" : ", while others are " + place_text(front.first)) +
      device_text(state, front.behind) + "; the stacks are saved in " + turn.options.run_dir +
      "/logs";
  for (MemberId id : front.behind)
    evict_hung(turn, turn.at(id), front.last.step, "no progress " + since);
  return after_deaths(turn, front.behind, what, 70);
}

}  // namespace lockstep::coordinator
