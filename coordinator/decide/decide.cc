#include "coordinator/decide/decide.h"

#include "coordinator/decide/decide_internal.h"
#include "coordinator/decide/invariants.h"

namespace lockstep::coordinator {
namespace {

using wire::Envelope;

// A message that comes too late says nothing about the present; its sender is told what the present
// is, which is all it needs to catch up.
Reason refuse_stale(Turn& turn, const Member& member, Reason reason) {
  push_present(turn, member);
  return reason;
}

// The fence for messages that count only in the started generation. kHeard: let through.
Reason fence_present(Turn& turn, const Member& member, Generation generation) {
  const State& state = turn.state;
  if (!is_open(state.run) || generation < state.generation || !is_listed(state, member)) {
    return refuse_stale(turn, member, Reason::kRefusedStaleGeneration);
  }
  return state.run == RunState::kStarted ? Reason::kHeard : Reason::kRefusedFuture;
}

// The latest point where a generation can have begun for a member whose first batch of it this is.
std::optional<ResumePoint> first_of(const wire::StepRecords& batch) {
  if (batch.records_size() > 0) return ResumePoint{batch.records(0).step(), Phase::kTrain};
  if (batch.evals_size() > 0) return ResumePoint{batch.evals(0).step(), Phase::kEval};
  return std::nullopt;
}

// A message of the planned generation says that its members have switched. SwitchReport and Promise
// judge that themselves; records say at least from which step on. Nothing: go on with the message.
std::optional<Reason> learn_of_switch(Turn& turn, Member& member, const Envelope& envelope) {
  State& state = turn.state;
  const Generation generation = envelope.generation();
  if (state.planned && generation == state.planned->generation && envelope.has_step_records()) {
    if (const auto since = first_of(envelope.step_records())) {
      if (const Reason reason = adopt_switch(turn, *since); is_end(reason)) return reason;
    }
  }
  if (generation == state.source_generation && is_source(state, member) &&
      envelope.has_step_records()) {
    note_lived(turn, member, generation);
  }
  return std::nullopt;
}

Reason on_member_leave(Turn& turn, Member& member, const Envelope& envelope) {
  const wire::Leave& leave = envelope.leave();
  // The process does not come again, and may run code after its loop. A failed one just ends, or
  // hangs.
  if (leave.reason() != wire::Leave::FAILED)
    turn.state.experience.known.erase({member.node, member.pid});
  // The failure of a process belongs to no generation.
  if (leave.reason() == wire::Leave::DRAINED) return on_drained(turn, member, leave);
  if (leave.reason() != wire::Leave::FAILED) {
    const Reason reason = fence_present(turn, member, envelope.generation());
    if (reason != Reason::kHeard) return reason;
  }
  return on_leave(turn, member, leave);
}

Reason judge_body(Turn& turn, Member& member, const Envelope& envelope) {
  const Generation generation = envelope.generation();
  switch (envelope.body_case()) {
    case Envelope::kPromise:
      return on_promise(turn, member, envelope.promise());
    case Envelope::kStepRecords:
      return on_records(turn, member, generation, envelope.step_records());
    case Envelope::kCheckpoint:
      return on_checkpoint(turn, member, generation, envelope.checkpoint());
    case Envelope::kCheck:
      return on_check(turn, member, generation, envelope.check());
    case Envelope::kEnd:
      return on_end(turn, member, generation, envelope.end());
    case Envelope::kLeave:
      return on_member_leave(turn, member, envelope);
    case Envelope::kPeerSuspect: {
      // A member that has not crossed the boundary yet reports the generation that broke there.
      const State& state = turn.state;
      const bool is_at_boundary = state.is_switched && member.lived < state.generation;
      const Reason reason =
          fence_present(turn, member, is_at_boundary ? state.generation : generation);
      return reason == Reason::kHeard ? on_suspect(turn, member, envelope.peer_suspect()) : reason;
    }
    case Envelope::kSwitched:
      return on_switched(turn, member, generation, envelope.switched());
    case Envelope::kDrain:
      return on_drain(turn, member, envelope.drain().reason(), kRunMeAgain);
    case Envelope::kStop:
      return on_stop(turn, envelope.stop().reason());
    default:
      return Reason::kRefusedMalformed;
  }
}

Reason from_member(Turn& turn, Member& member, const Envelope& envelope) {
  const State& state = turn.state;
  member.heard_ms = turn.now_ms;
  if (envelope.has_heartbeat()) {
    return on_heartbeat(turn, member, envelope.generation(), envelope.heartbeat());
  }
  if (envelope.term() < state.term) return refuse_stale(turn, member, Reason::kRefusedStaleTerm);
  if (envelope.term() > state.term || envelope.generation() > state.last_generation) {
    return Reason::kRefusedFuture;
  }
  if (const auto reason = learn_of_switch(turn, member, envelope)) return *reason;
  return judge_body(turn, member, envelope);
}

Reason from_agent(Turn& turn, KnownAgent& agent, const Envelope& message) {
  if (message.has_worker_exit()) return on_worker_exit(turn, agent, message.worker_exit());
  if (message.has_node_notice()) return on_node_notice(turn, agent, message.node_notice());
  if (message.has_stop()) return on_stop(turn, message.stop().reason());
  return message.has_heartbeat() ? Reason::kHeard : Reason::kRefusedMalformed;
}

Reason after_the_end(Turn& turn, const MessageReceived& event) {
  const Envelope& message = event.envelope;
  if (message.has_register_() || message.has_agent_hello() || message.has_leave()) {
    say_goodbye(turn, event.connection, turn.state.exit_code, turn.state.message);
  }
  return Reason::kRefusedEnded;
}

// The message with the name that its machine has here (state/node_names.h).
template <typename Message>
Message at_its_node(Turn& turn, Message message) {
  message.set_node(node_of(turn, message.node(), message.machine()));
  return message;
}

Reason on_message(Turn& turn, const MessageReceived& event) {
  const Envelope& message = event.envelope;
  if (turn.state.run == RunState::kTermEnded) return Reason::kIgnored;  // the next term is asked
  if (turn.state.run == RunState::kEnded) return after_the_end(turn, event);
  if (message.has_register_()) {
    return on_register(turn, event.connection, at_its_node(turn, message.register_()));
  }
  if (message.has_agent_hello()) {
    return on_agent_hello(turn, event.connection, at_its_node(turn, message.agent_hello()));
  }
  if (message.has_command()) return on_command(turn, event.connection, message.command());
  if (const auto agent = turn.state.agents.find(event.connection);
      agent != turn.state.agents.end()) {
    return from_agent(turn, agent->second, message);
  }
  if (Member* member = turn.member_of(event.connection)) return from_member(turn, *member, message);
  // Perhaps one that was declared dead and does not know: it will connect and register again.
  turn.actions.push_back(CloseConnection{event.connection});
  return Reason::kRefusedUnregistered;
}

struct Visitor {
  Turn& turn;
  Reason operator()(const MessageReceived& event) const { return on_message(turn, event); }
  Reason operator()(const ConnectionClosed& event) const { return on_closed(turn, event); }
  Reason operator()(const Tick&) const { return on_tick(turn); }
  Reason operator()(const ManifestRead& event) const { return on_manifest_read(turn, event); }
  Reason operator()(const StopSignal& event) const { return on_stop(turn, event.why); }
};

}  // namespace

void Turn::send(ConnectionId to, wire::Envelope envelope) {
  send_as(to, state.generation, std::move(envelope));
}

void Turn::send_as(ConnectionId to, Generation generation, wire::Envelope envelope) {
  send_to({to}, generation, std::move(envelope));
}

void Turn::send_to(const std::vector<ConnectionId>& to, Generation generation,
                   wire::Envelope envelope) {
  envelope.set_term(state.term);
  envelope.set_generation(generation);
  const auto shared = std::make_shared<const wire::Envelope>(std::move(envelope));
  for (const ConnectionId connection : to)
    if (connection != 0) actions.push_back(Send{connection, shared});
}

void Turn::note(LogLine::Level level, const std::string& kind, const std::string& text) {
  persist(EventEntry{state.generation, kind, text});
  log(level, kind, text);
}

Member* Turn::member_of(ConnectionId connection) {
  const auto it = state.by_connection.find(connection);
  return it == state.by_connection.end() ? nullptr : find(it->second);
}

Member* Turn::find(MemberId id) {
  const auto it = state.members.find(id);
  return it == state.members.end() ? nullptr : &it->second;
}

Decision decide(int64_t now_ms, State state, const Event& event, const Options& options) {
  const StateMark before = mark_of(state, event);
  Decision decision;
  decision.state = std::move(state);
  Turn turn{now_ms, decision.state, options, decision.actions};
  decision.reason = std::visit(Visitor{turn}, event);
  if (const auto reason = judge_bad_loss(turn)) decision.reason = *reason;
  if (decision.state.run == RunState::kStarted && decision.state.change_due) plan_change(turn);
  check_invariants(before, event, decision, options);
  return decision;
}

}  // namespace lockstep::coordinator
