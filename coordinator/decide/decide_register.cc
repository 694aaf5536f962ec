// A process wants in, or is back.

#include <algorithm>

#include "comm/base/limits.h"
#include "coordinator/decide/open_term.h"
#include "coordinator/state/identity.h"

namespace lockstep::coordinator {
namespace {

Reason refuse(Turn& turn, ConnectionId connection, Reason reason, const std::string& why) {
  wire::Envelope envelope;
  envelope.mutable_evict()->set_reason(why);
  turn.send(connection, std::move(envelope));
  turn.actions.push_back(CloseConnection{connection});
  turn.log(LogLine::Level::kWarn, "register_refused", why);
  return reason;
}

Layout layout_of(const Turn& turn, MemberId member, const wire::Register& m) {
  Layout layout{member,
                fingerprint_of(m),
                m.flat_elements(),
                {m.tensor_bounds().begin(), m.tensor_bounds().end()},
                {},
                {}};
  if (!turn.options.is_script_open()) return layout;
  layout.facts = m.facts();
  layout.script = script_identity(m);
  return layout;
}

void attach(Turn& turn, Member& member, ConnectionId connection, const wire::Register& m) {
  if (member.connection != connection) detach(turn, member);
  member.connection = connection;
  member.data = m.data();
  member.metrics_address = m.metrics_address();
  member.largest_slot = m.largest_slot();
  member.gpu = m.gpu();
  if (m.gpu().numa().size() > limits::kNumaBytes) member.gpu.clear_numa();
  member.process = m.process();
  member.heard_ms = turn.now_ms;
  turn.state.by_connection[connection] = member.id;
  turn.state.change_due = true;
  wire::Envelope envelope;
  wire::Registered* registered = envelope.mutable_registered();
  registered->set_member(member.id);
  *registered->mutable_job() = turn.options.job;
  registered->set_run_dir(turn.options.run_dir);
  turn.send(connection, std::move(envelope));
}

// Nothing: a process that is new, or whose id counts no more.
Member* known_member(Turn& turn, ConnectionId connection, const wire::Register& m) {
  Member* member = turn.member_of(connection);
  if (member == nullptr && m.member() != 0) member = turn.find(m.member());
  if (member == nullptr || member->state == MemberState::kDead) {
    // It may have lost the connection before it learnt its id.
    const auto process = turn.state.by_process.find({m.node(), m.pid()});
    member = process == turn.state.by_process.end() ? nullptr : turn.find(process->second);
  }
  return member;
}

// The member of this pid is gone. Either its pid belongs to another process now: a container that
// was made again counts pids from the start. Or an earlier coordinator evicted it and took its
// process in as a newer member, which this coordinator has not heard of: such a process has given
// up its state and counts its batches from the start. Nothing: there is no such member, or the run
// goes on to take the newcomer in.
std::optional<Reason> bury_namesake(Turn& turn, const wire::Register& m) {
  State& state = turn.state;
  const auto process = state.by_process.find({m.node(), m.pid()});
  Member* const member = process == state.by_process.end() ? nullptr : turn.find(process->second);
  if (member == nullptr) return std::nullopt;
  const bool is_newer_member = state.is_take_over && m.member() > member->id &&
                               m.member() < state.next_member && turn.find(m.member()) == nullptr;
  if (!is_newer_member && !is_other_process(member->process, m.process())) return std::nullopt;
  member->has_exited = true;
  if (member->state == MemberState::kLeft || member->state == MemberState::kGone) {
    forget_process(state, *member);
    return std::nullopt;
  }
  const std::string what = describe(state, *member) +
                           (is_newer_member ? " is gone: an earlier coordinator had evicted it"
                                            : " died: another process has its pid on its machine");
  declare_dead(turn, *member);
  const Reason reason = after_deaths(turn, {member->id}, what, 70);
  const bool is_over = state.run == RunState::kEnded || state.run == RunState::kTermEnded;
  return is_over ? std::optional(reason) : std::nullopt;
}

bool has_ended(const State& state, const wire::Register& m) {
  return m.process() != 0 && std::find(state.ended.begin(), state.ended.end(),
                                       std::pair(m.node(), m.process())) != state.ended.end();
}

// A registration may bring news: a switch, or an end by the script, that no member has reported.
std::optional<Reason> learn(Turn& turn, Member& member, const wire::Register& m) {
  State& state = turn.state;
  if (m.generation() == 0) return std::nullopt;
  if (state.planned && m.generation() == state.planned->generation) {
    if (const Reason reason = adopt_switch(turn, from_wire(m.since())); is_end(reason)) {
      return reason;
    }
  }
  if (!is_source(state, member)) return std::nullopt;
  note_lived(turn, member, m.generation());
  const bool is_at_end = m.has_state() && m.ends_at() != 0 && m.ends_at() == m.applied().step();
  if (is_at_end && m.generation() == state.source_generation && can_end_at(turn, m.ends_at()))
    end_by_script(turn, m.ends_at());
  return std::nullopt;
}

Reason reconnect(Turn& turn, Member& member, ConnectionId connection, const wire::Register& m) {
  if (member.state == MemberState::kGone) {
    say_goodbye(turn, connection, member.farewell, "it was left out, and was told so before");
    return Reason::kAlreadyCounted;
  }
  if (is_other_process(member.process, m.process()) || member.pid != m.pid() ||
      member.node != m.node() || member.local_rank != m.local_rank()) {
    return refuse(turn, connection, Reason::kRefusedMalformed,
                  name_of(m) + " claims the id of " + describe(turn.state, member));
  }
  if (!is_valid(m.since(), turn.options) || !is_valid(m.applied(), turn.options)) {
    return refuse(turn, connection, Reason::kRefusedMalformed,
                  name_of(m) + " names a step or a phase that this run does not have");
  }
  if (m.generation() > turn.state.last_generation) {
    return refuse(turn, connection, Reason::kRefusedFuture,
                  name_of(m) + " knows generation " + std::to_string(m.generation()) +
                      ", which this coordinator never gave out");
  }
  if (const Reason reason = check_fit(turn, connection, m); reason != Reason::kRegistered) {
    return reason;
  }
  if (!turn.state.layout) turn.state.layout = layout_of(turn, member.id, m);
  note_script(turn, m);
  const bool is_duplicate = member.connection == connection;
  attach(turn, member, connection, m);
  if (const auto reason = learn(turn, member, m)) return *reason;
  push_present(turn, member);
  return is_duplicate ? Reason::kAlreadyCounted : Reason::kReconnected;
}

// Tells a newcomer what to expect.
std::string standing_of(const State& state, const Member& member) {
  if (is_expelled(state, member)) {
    return "; it takes no part: a worker there has computed wrong in this run";
  }
  return is_open(state.run) ? "; it joins when a place is free" : "";
}

// Takes a process in that is no member yet.
Member& enroll(Turn& turn, const wire::Register& m) {
  State& state = turn.state;
  Member member;
  member.id = state.next_member++;
  member.node = m.node();
  member.local_rank = m.local_rank();
  member.pid = m.pid();
  member.process = m.process();
  turn.persist(MemberEntry{member.id, state.term, member.node, member.local_rank, member.pid});
  turn.log(LogLine::Level::kInfo, "member_registered",
           name_of(m) + " is member " + std::to_string(member.id) +
               (m.member() == 0 ? "" : ", it was member " + std::to_string(m.member())) +
               standing_of(state, member));
  if (!state.layout) state.layout = layout_of(turn, member.id, m);
  note_script(turn, m);
  state.by_process[{member.node, member.pid}] = member.id;
  state.waiting.insert(member.id);
  state.replacements.erase(place_of(member));
  state.given_up.erase(place_of(member));
  state.experience.known[{member.node, member.pid}] = member.process;
  if (state.gathered_ms == 0) state.gathered_ms = turn.now_ms;
  return state.members[member.id] = std::move(member);
}

}  // namespace

Reason on_register(Turn& turn, ConnectionId connection, const wire::Register& m) {
  State& state = turn.state;
  if (!m.run_id().empty() && m.run_id() != state.run_id) {
    return refuse(
        turn, connection, Reason::kRefusedOtherRun,
        name_of(m) + " belongs to run \"" + m.run_id() + "\", this is \"" + state.run_id + "\"");
  }
  if (m.flat_elements() == 0 || m.node().empty() || m.pid() == 0) {
    return refuse(turn, connection, Reason::kRefusedMalformed,
                  name_of(m) + " registered without node, pid or size of its gradients");
  }
  if (is_script(turn.options.job.model())) {
    if (const std::string what = malformed_script(m); !what.empty())
      return refuse(turn, connection, Reason::kRefusedMalformed,
                    name_of(m) + " registered with a script that reports " + what);
  }
  if (has_ended(state, m)) {
    return refuse(turn, connection, Reason::kRefusedGone,
                  name_of(m) + " registered after its agent had told that its process has ended");
  }
  if (const auto over = bury_namesake(turn, m)) return *over;
  if (Member* member = known_member(turn, connection, m)) {
    return reconnect(turn, *member, connection, m);
  }
  if (state.by_process.size() >= limits::kMembers) {
    return refuse(turn, connection, Reason::kRefusedFull,
                  name_of(m) + " is too many: the run already has " +
                      std::to_string(state.by_process.size()) + " workers");
  }
  if (const Reason reason = check_fit(turn, connection, m); reason != Reason::kRegistered) {
    return reason;
  }
  Member& member = enroll(turn, m);
  attach(turn, member, connection, m);
  if (obey_old_order(turn, member, m.member())) return Reason::kDrainRequested;
  if (const auto reason = obey_drain_of_node(turn, member)) return *reason;
  if (state.lost_ms) return total_loss(turn, "all workers died", 70);
  return gather(turn, m.member() == 0 ? Reason::kRegistered : Reason::kNewIdentity);
}

}  // namespace lockstep::coordinator
