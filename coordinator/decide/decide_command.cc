// Handles commands of people and schedulers: more or fewer workers, a node or a worker that has to
// go, the end.
#include <algorithm>
#include <utility>

#include "comm/base/limits.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

Reason answer(Turn& turn, ConnectionId to, bool ok, const std::string& text) {
  wire::Envelope envelope;
  envelope.mutable_command_answer()->set_ok(ok);
  envelope.mutable_command_answer()->set_message(text);
  turn.send(to, std::move(envelope));
  return ok ? Reason::kCommandDone : Reason::kCommandRefused;
}

// How many workers a node's agent keeps running.
struct Kept {
  std::string node;
  uint32_t workers = 0;
  uint32_t busy = 0;  // that live or are on their way; the places of the others are empty
};

// In the order of ranks.
std::vector<Kept> kept_workers(const State& state) {
  std::map<std::string, Kept> of_node;
  // Agents come back to a coordinator that took over after the members are known: until then a node
  // keeps as many workers as it was ordered to, or as live there, and the agent gets its number
  // with its hello.
  for (const auto& [process, id] : state.by_process) {
    Kept& kept = of_node[process.first];
    ++kept.workers;
    const Member& member = state.members.at(id);
    kept.busy += member.is_draining || is_expelled(state, member) ? 0 : 1;
  }
  for (auto& [node, kept] : of_node) {
    const auto ordered = state.workers_of_node.find(node);
    if (ordered != state.workers_of_node.end()) kept.workers = ordered->second;
  }
  for (const auto& [connection, agent] : state.agents) {
    Kept& kept = of_node[agent.node];
    kept.workers = agent.workers;
    kept.busy += static_cast<uint32_t>(agent.awaited.size());
  }
  for (const Place& place : state.replacements) {
    if (const auto found = of_node.find(place.node); found != of_node.end()) ++found->second.busy;
  }
  std::vector<Kept> all;
  for (auto& [node, kept] : of_node) {
    kept.node = node;
    all.push_back(std::move(kept));
  }
  std::sort(all.begin(), all.end(),
            [](const Kept& a, const Kept& b) { return natural_less(a.node, b.node); });
  return all;
}

// Notes that a `scale` took all `had` workers from the node; 0: that is so no more.
void note_emptied(Turn& turn, const std::string& node, uint32_t had) {
  if (had == 0 && turn.state.emptied.erase(node) == 0) return;
  if (had > 0) turn.state.emptied[node] = had;
  turn.persist(SettingEntry{kEmptiedSetting + node, had == 0 ? "" : std::to_string(had)});
}

// Empty places go first, then the last nodes lose workers, as the last ranks leave first.
void take_away(std::vector<Kept>& kept, uint32_t surplus) {
  for (const bool is_busy_taken : {false, true}) {
    for (auto it = kept.rbegin(); it != kept.rend() && surplus > 0; ++it) {
      const uint32_t empty = it->workers - std::min(it->workers, it->busy);
      const uint32_t less = std::min(is_busy_taken ? it->workers : empty, surplus);
      it->workers -= less;
      surplus -= less;
    }
  }
}

// How many workers every agent should keep. New ones come where there are fewest.
// REQUIRES: there is an agent.
std::vector<Kept> spread(std::vector<Kept> kept, uint32_t workers) {
  uint32_t sum = 0;
  for (const Kept& of_node : kept) sum += of_node.workers;
  if (sum > workers) take_away(kept, sum - workers);
  for (; sum < workers; ++sum) {
    ++std::min_element(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
        return a.workers < b.workers;
      })->workers;
  }
  return kept;
}

void forget_kept(Turn& turn) {
  for (const auto& [node, workers] : turn.state.workers_of_node)
    turn.persist(SettingEntry{kKeptSetting + node, ""});
  turn.state.workers_of_node.clear();
}

Reason scale(Turn& turn, ConnectionId connection, uint32_t workers) {
  State& state = turn.state;
  const uint32_t least = std::max(1u, turn.options.min_workers);
  if (workers < least || workers > limits::kMembers) {
    return answer(turn, connection, false,
                  "the run can have " + std::to_string(least) + " (cluster.min_workers) to " +
                      std::to_string(limits::kMembers) + " workers, not " +
                      std::to_string(workers));
  }
  const uint32_t slots = turn.options.shape.slots;
  if (workers > slots) {
    return answer(turn, connection, false,
                  "train.slots is " + std::to_string(slots) + ": at most " +
                      counted(slots, "worker") + " have something to do");
  }
  const std::vector<Kept> kept = kept_workers(state);
  if (kept.empty())
    return answer(turn, connection, false,
                  "no node has joined the run yet, so nobody would start the workers; ask again "
                  "when `lockstep status` shows some");
  const uint32_t before = turn.wanted();
  state.wanted_workers = workers;
  state.given_up.clear();  // agents are told again how many they keep
  state.change_due = true;
  turn.persist(SettingEntry{"workers", std::to_string(workers)});
  forget_kept(turn);  // also of nodes that are not here: they come back with their own number
  const std::vector<Kept> wanted = spread(kept, workers);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::string& node = wanted[i].node;
    if (wanted[i].workers > 0) note_emptied(turn, node, 0);
    if (wanted[i].workers == 0 && kept[i].workers > 0) note_emptied(turn, node, kept[i].workers);
    keep_workers(turn, node, wanted[i].workers);
  }
  send_set_workers(turn);
  const std::string what =
      "the run is to have " + counted(workers, "worker") + ", it had " + std::to_string(before);
  turn.note(LogLine::Level::kInfo, "scaled", what);
  return answer(turn, connection, true,
                what + (workers > before
                            ? "; new workers join as they come, and training does not wait for them"
                            : "; the last ranks leave at the next boundary"));
}

// Durable with the answer: a coordinator that takes over before the change is planned leaves the
// member out, too.
void order_to_leave(Turn& turn, MemberId id) {
  if (!turn.state.ordered_to_leave.insert(id).second) return;
  turn.persist(SettingEntry{kLeavingSetting + std::to_string(id), "1"});
}

Reason drain_node(Turn& turn, ConnectionId connection, const std::string& node) {
  State& state = turn.state;
  std::vector<MemberId> members;
  for (const auto& [process, id] : state.by_process) {
    if (process.first == node) members.push_back(id);
  }
  if (members.empty()) {
    return answer(turn, connection, false, "no worker of the run is on node \"" + node + "\"");
  }
  keep_workers(turn, node, 0);
  note_emptied(turn, node, 0);
  send_set_workers(turn);
  for (MemberId id : members) order_to_leave(turn, id);
  for (MemberId id : members) {
    if (is_end(on_drain(turn, turn.at(id), "node " + node + " is drained", 0))) break;
  }
  return answer(
      turn, connection, true,
      counted(members.size(), "worker") + " of node " + node + " leave" +
          (state.stop_ms ? "; too few would stay, so the run stops at a checkpoint" : ""));
}

Reason drain_member(Turn& turn, ConnectionId connection, MemberId id) {
  Member* member = turn.find(id);
  if (member == nullptr || !is_alive(*member)) {
    return answer(turn, connection, false, "no living worker is member " + std::to_string(id));
  }
  const std::string who = describe(turn.state, *member);
  order_to_leave(turn, id);
  on_drain(turn, *member, "it was asked for", 0);
  return answer(turn, connection, true,
                who + " leaves" +
                    (turn.state.stop_ms ? "; too few would stay, so the run stops at a checkpoint"
                                        : " at the next boundary"));
}

// The answer goes out first: the run may end with this event.
Reason stop(Turn& turn, ConnectionId connection) {
  const State& state = turn.state;
  const bool stops_already = state.stop_ms && !state.is_shrinking;
  const std::string what = state.source_generation == 0
                               ? "the run ends before training began"
                               : "the run stops: the workers write a checkpoint at the next step "
                                 "boundary and leave";
  const Reason answered =
      answer(turn, connection, true, stops_already ? "the run is being stopped already" : what);
  const Reason reason = on_stop(turn, "lockstep stop");
  return is_end(reason) ? reason : answered;
}

}  // namespace

void keep_workers(Turn& turn, const std::string& node, uint32_t workers) {
  turn.state.workers_of_node[node] = workers;
  if (workers == 0)  // its agent starts none of them any more
    std::erase_if(turn.state.replacements, [&](const Place& place) { return place.node == node; });
  else  // its agent is told again, and starts them also where it had given up
    std::erase_if(turn.state.given_up, [&](const auto& e) { return e.first.node == node; });
  turn.persist(SettingEntry{kKeptSetting + node, std::to_string(workers)});
}

bool obey_old_order(Turn& turn, Member& member, MemberId was) {
  if (!turn.state.ordered_to_leave.contains(was)) return false;
  forget_order(turn, was);
  order_to_leave(turn, member.id);
  on_drain(turn, member, "it was told to leave as member " + std::to_string(was), 0);
  return true;
}

std::optional<Reason> obey_drain_of_node(Turn& turn, Member& member) {
  if (!keeps_none(turn.state, member.node) || turn.state.emptied.contains(member.node))
    return std::nullopt;
  order_to_leave(turn, member.id);
  return on_drain(turn, member,
                  "node " + member.node + " was drained; `lockstep scale` may use it again", 0);
}

void forget_order(Turn& turn, MemberId member) {
  if (turn.state.ordered_to_leave.erase(member) == 0) return;
  turn.persist(SettingEntry{kLeavingSetting + std::to_string(member), ""});
}

void send_set_workers(Turn& turn) {
  for (auto& [connection, agent] : turn.state.agents) {
    const auto wanted = turn.state.workers_of_node.find(agent.node);
    if (wanted == turn.state.workers_of_node.end() || wanted->second == agent.workers) continue;
    agent.workers = wanted->second;
    wire::Envelope envelope;
    envelope.mutable_set_workers()->set_workers(wanted->second);
    turn.send(connection, std::move(envelope));
  }
}

bool is_too_much(const Turn& turn) {
  const State& state = turn.state;
  size_t stay = 0;
  for (MemberId id : state.ranks) {
    const Member& member = state.members.at(id);
    stay += is_alive(member) && !member.is_draining ? 1 : 0;
  }
  for (MemberId id : state.waiting) stay += may_join(turn, state.members.at(id)) ? 1 : 0;
  return stay < std::max(1u, turn.options.min_workers);
}

Reason on_drain(Turn& turn, Member& member, const std::string& why, int farewell) {
  State& state = turn.state;
  if (!is_alive(member)) return Reason::kAlreadyCounted;
  // A member that is already being left out keeps its place if it is also drained.
  member.farewell = std::max(member.farewell, farewell);
  if (member.is_draining) return Reason::kAlreadyCounted;
  member.is_draining = true;
  turn.note(LogLine::Level::kInfo, "drain_requested",
            describe(state, member) + " is to leave: " + why);
  if (!is_listed(state, member) && !state.leavers.contains(member.id)) {
    // It takes part in nothing. If a planned change has it, the change after that leaves it out.
    if (!state.planned || !contains(state.planned->ranks, member.id)) {
      bid_farewell(turn, member, "it was drained before it took part");
      // Another member that leaves may have had to wait for this one.
      const bool leaves_another = std::any_of(state.ranks.begin(), state.ranks.end(),
                                              [&](MemberId id) { return turn.at(id).is_draining; });
      if (!leaves_another) return Reason::kDrainRequested;
    }
  }
  state.change_due = true;
  if (state.source_generation != 0 && is_too_much(turn)) {
    const Reason reason = on_stop(turn, describe(state, member) + " has to leave (" + why +
                                            ") and fewer than cluster.min_workers would stay");
    if (is_end(reason)) return reason;
  }
  return Reason::kDrainRequested;
}

Reason on_command(Turn& turn, ConnectionId connection, const wire::Command& m) {
  switch (m.body_case()) {
    case wire::Command::kScaleTo:
      return scale(turn, connection, m.scale_to());
    case wire::Command::kDrainNode:
      return drain_node(turn, connection, m.drain_node());
    case wire::Command::kDrainMember:
      return drain_member(turn, connection, m.drain_member());
    case wire::Command::kStop:
      return stop(turn, connection);
    default:
      return answer(turn, connection, false,
                    "this coordinator does not know that command; use the lockstep of the "
                    "coordinator's version");
  }
}

}  // namespace lockstep::coordinator
