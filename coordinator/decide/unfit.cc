// Places that are not fit to train at: their agent has looked at the GPU there (NodeNotice). A
// notice about the whole node changes nothing here: its agent acts.
//
//   fit ──notice──▶ unfit ──undo──▶ fit
//                     └ the agent connects again ──▶ fit, until it repeats the notice
//
// A member at an unfit place is left out by the next planned change, like one that drains. Its
// worker ends with 0, and its agent, which knows why, starts none there before the GPU is fit. A
// worker that comes there all the same, such as one that was started again after a crash, is
// turned away with 75.
//
// INVARIANTS
//  N1 A planned change lists a member at an unfit place only if fewer than cluster.min_workers
//     would take part without it, or if it is needed to hand the state over.
//  N2 A notice stops no run: it takes no worker that cluster.min_workers needs. Where fewer are
//     left after a death and no replacement comes, the agents are asked to start workers at unfit
//     places all the same. Only a first start ends, if so few places are fit that it could not
//     begin.
//  N3 The agent is the witness. The journal has events about it, and a new term knows no unfit
//     place before the agents have repeated their notices: they may have ended, or the GPUs may
//     have been mended meanwhile. Until then a member at such a place takes part, which does no
//     harm: it is left out as before.
#include <algorithm>

#include "comm/base/limits.h"
#include "comm/base/planted_bug.h"
#include "comm/base/text/printable.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

constexpr char kTell[] = "tell";
constexpr char kOff[] = "off";
constexpr char kCloud[] = "cloud";  // the source of notices about whole nodes

std::string place_name(const Place& place) {
  return "local rank " + std::to_string(place.local_rank) + " of node " + place.node;
}

bool acts(const Turn& turn) {
  const std::string& mode = turn.options.job.cluster().gpu_health();
  return mode != kTell && mode != kOff;
}

bool is_unfit_place(const Turn& turn, const Place& place) {
  const auto unfit = turn.state.unfit.find(place);
  return acts(turn) && unfit != turn.state.unfit.end() && unfit->second.is_current;
}

// How many members take part, or may, at fit places.
size_t fit_members(const Turn& turn) {
  const State& state = turn.state;
  size_t fit = 0;
  for (MemberId id : state.ranks) {
    const Member& member = state.members.at(id);
    fit += is_alive(member) && !member.is_draining && !is_unfit(turn, member) ? 1 : 0;
  }
  for (MemberId id : state.waiting) {
    const Member& member = state.members.at(id);
    fit += may_join(turn, member) && !is_unfit(turn, member) ? 1 : 0;
  }
  return fit;
}

bool has_worker(const State& state, const Place& place) {
  return std::any_of(state.by_process.begin(), state.by_process.end(), [&](const auto& entry) {
    return place_of(state.members.at(entry.second)) == place;
  });
}

// No worker is there, and none comes.
bool is_empty_unfit(const Turn& turn, const Place& place) {
  return is_unfit_place(turn, place) && !has_worker(turn.state, place) &&
         !turn.state.replacements.contains(place);
}

// It is empty, and its agent has not given it up.
bool is_held(const Turn& turn, const Place& place) {
  return is_empty_unfit(turn, place) && !turn.state.given_up.contains(place) &&
         !keeps_none(turn.state, place.node);
}

// How many members take part or may come, at any place.
size_t expected_members(const Turn& turn) {
  const State& state = turn.state;
  size_t count = state.replacements.size();
  for (const auto& [connection, agent] : state.agents)
    count += static_cast<size_t>(
        std::count_if(agent.awaited.begin(), agent.awaited.end(),
                      [&living = agent.living](uint32_t pid) { return living.contains(pid); }));
  for (const auto& [process, id] : state.by_process) {
    const Member& member = state.members.at(id);
    count += is_alive(member) && !member.is_draining && !is_expelled(state, member) ? 1 : 0;
  }
  return count;
}

std::string consequence_of(const Turn& turn, const Place& place) {
  if (!acts(turn)) return "cluster.gpu_health is tell, so the run goes on with it";
  if (!has_worker(turn.state, place)) return "no worker starts there until it is fit again";
  if (fit_members(turn) < least_workers(turn))
    return "its worker stays, because fewer than cluster.min_workers would be left";
  return "its worker leaves between two steps, and none starts there until it is fit again";
}

bool note_unfit(Turn& turn, const KnownAgent& agent, const Place& place,
                const std::string& reason) {
  Unfit& unfit = turn.state.unfit[place];
  const bool is_known = unfit.agent == agent.pid && unfit.reason == reason;
  const bool is_news = !is_known || !unfit.is_current;
  unfit = {agent.pid, reason, true};
  if (!is_known)
    turn.note(LogLine::Level::kWarn, "gpu_unfit",
              "the GPU of " + place_name(place) + " is not fit to train on: " + reason + ". So " +
                  consequence_of(turn, place));
  return is_news;
}

bool note_fit(Turn& turn, const Place& place) {
  if (turn.state.unfit.erase(place) == 0) return false;
  turn.note(LogLine::Level::kInfo, "gpu_fit",
            "the GPU of " + place_name(place) + " is fit to train on again");
  return true;
}

// The machine is to be taken away, or may be. Its agent tells its workers to leave; here it is told
// to people, once for each connection of the agent.
Reason on_notice_of_node(Turn& turn, KnownAgent& agent, const wire::NodeNotice& message) {
  if (message.undo()) return Reason::kIgnored;
  const std::string reason = printable(message.reason().substr(0, limits::kNoticeBytes));
  if (agent.notice == reason) return Reason::kAlreadyCounted;
  agent.notice = reason;
  turn.note(LogLine::Level::kWarn, "node_notice", reason);
  return Reason::kNoticed;
}

}  // namespace

Reason on_node_notice(Turn& turn, KnownAgent& agent, const wire::NodeNotice& message) {
  const bool is_of_node = message.source() == kCloud;
  if (message.local_ranks().empty() != is_of_node ||
      static_cast<size_t>(message.local_ranks_size()) > limits::kMembers)
    return Reason::kRefusedMalformed;
  if (is_of_node) return on_notice_of_node(turn, agent, message);
  if (turn.options.job.cluster().gpu_health() == kOff) return Reason::kIgnored;
  if (message.undo() && LOCKSTEP_BUG(kUndoIgnored)) return Reason::kIgnored;
  const std::string reason = printable(message.reason().substr(0, limits::kNoticeBytes));
  bool is_news = false;
  for (const uint32_t local_rank : message.local_ranks()) {
    const Place place{agent.node, local_rank};
    const bool is_known = turn.state.unfit.contains(place);
    if (!message.undo() && !is_known && turn.state.unfit.size() >= limits::kMembers)
      return Reason::kRefusedFull;
    is_news |= message.undo() ? note_fit(turn, place) : note_unfit(turn, agent, place, reason);
  }
  if (!is_news) return Reason::kAlreadyCounted;
  turn.state.change_due = true;
  return gather(turn, Reason::kNoticed);
}

void await_notices(Turn& turn, const KnownAgent& agent) {
  const State& state = turn.state;
  const auto is_here = [&](uint32_t pid) {
    return std::any_of(state.agents.begin(), state.agents.end(), [&](const auto& entry) {
      return entry.second.node == agent.node && entry.second.pid == pid;
    });
  };
  for (auto& [place, unfit] : turn.state.unfit) {
    if (place.node != agent.node) continue;
    if (unfit.agent == agent.pid || !is_here(unfit.agent)) unfit.is_current = false;
  }
}

bool is_unfit(const Turn& turn, const Member& member) {
  return is_unfit_place(turn, place_of(member));
}

size_t least_workers(const Turn& turn) {
  return std::max(1u, turn.options.min_workers);
}

size_t empty_unfit(const Turn& turn) {
  return static_cast<size_t>(
      std::count_if(turn.state.unfit.begin(), turn.state.unfit.end(),
                    [&](const auto& entry) { return is_empty_unfit(turn, entry.first); }));
}

bool call_unfit(Turn& turn) {
  State& state = turn.state;
  size_t here = expected_members(turn);
  std::string names;
  for (const auto& [connection, agent] : state.agents) {
    wire::Envelope envelope;
    wire::SetWorkers& order = *envelope.mutable_set_workers();
    order.set_workers(agent.workers);
    for (const auto& [place, unfit] : state.unfit) {
      const bool is_its = place.node == agent.node && unfit.agent == agent.pid;
      if (here >= least_workers(turn) || !is_its || !is_held(turn, place)) continue;
      ++here;
      order.add_unfit_local_ranks(place.local_rank);
      names += (names.empty() ? "" : ", ") + place_name(place) + " (" + unfit.reason + ")";
    }
    for (const uint32_t local_rank : order.unfit_local_ranks())
      state.replacements.insert({agent.node, local_rank});
    if (order.unfit_local_ranks_size() > 0) turn.send(connection, std::move(envelope));
  }
  if (names.empty()) return false;
  turn.note(
      LogLine::Level::kWarn, "unfit_called",
      "workers start on GPUs that are not fit, because fewer than cluster.min_workers are left "
      "without them: " +
          names);
  return true;
}

std::string what_is_unfit(const State& state) {
  std::string names;
  for (const auto& [place, unfit] : state.unfit)
    if (unfit.is_current)
      names += (names.empty() ? "" : ", ") + place_name(place) + " (" + unfit.reason + ")";
  return names.empty() ? "" : ". GPUs that are not fit: " + names;
}

void turn_away_unfit(Turn& turn) {
  State& state = turn.state;
  if (state.unfit.empty() || fit_members(turn) < least_workers(turn)) return;
  std::vector<MemberId> out;
  for (MemberId id : state.waiting) {
    const Member& member = state.members.at(id);
    if (is_alive(member) && member.connection != 0 && is_unfit(turn, member)) out.push_back(id);
  }
  for (MemberId id : out) {
    Member& member = turn.at(id);
    member.farewell = std::max(member.farewell, kRunMeAgain);
    turn.log(LogLine::Level::kInfo, "member_turned_away",
             describe(state, member) + " takes no part: the GPU of its place is not fit");
    bid_farewell(turn, member, "the GPU of its place is not fit to train on");
  }
}

}  // namespace lockstep::coordinator
