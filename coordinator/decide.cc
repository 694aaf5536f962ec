#include "coordinator/decide.h"

#include <algorithm>

#include "coordinator/decide_internal.h"
#include "coordinator/invariants.h"

namespace lockstep::coordinator {
namespace {

using wire::Envelope;

void tell_evicted(Turn& turn, ConnectionId connection, const std::string& why) {
  Envelope envelope;
  envelope.mutable_evict()->set_reason(why);
  turn.send(connection, std::move(envelope));
  turn.actions.push_back(CloseConnection{connection});
}

bool is_present(const State& state, const Member& member) {
  return std::find(state.ranks.begin(), state.ranks.end(), member.id) != state.ranks.end();
}

// A message that comes too late says nothing about the present; its sender is told what the present
// is, which is all it needs to catch up.
Reason refuse_stale(Turn& turn, const Member& member, Reason reason) {
  push_present(turn, member);
  return reason;
}

// The generation a message speaks for.
Generation generation_of(const Envelope& envelope) {
  return envelope.has_promise() ? envelope.promise().generation() : envelope.generation();
}

// kHeard: let through.
Reason fence(Turn& turn, const Member& member, const Envelope& envelope) {
  const State& state = turn.state;
  const Generation generation = generation_of(envelope);
  if (envelope.term() < state.term) return refuse_stale(turn, member, Reason::kRefusedStaleTerm);
  if (envelope.term() > state.term || generation > state.generation) return Reason::kRefusedFuture;
  // That a process failed is a fact of no generation.
  if (envelope.has_leave() && envelope.leave().reason() == wire::Leave::FAILED) {
    return Reason::kHeard;
  }
  if (envelope.has_stop()) return Reason::kHeard;
  const bool is_open = state.run == RunState::kPrepared || state.run == RunState::kStarted;
  if (generation < state.generation || !is_open || !is_present(state, member)) {
    return refuse_stale(turn, member, Reason::kRefusedStaleGeneration);
  }
  if (!envelope.has_promise() && state.run != RunState::kStarted) return Reason::kRefusedFuture;
  return Reason::kHeard;
}

Reason from_member(Turn& turn, Member& member, const Envelope& envelope) {
  if (member.state == MemberState::kDead) {
    tell_evicted(turn, member.connection, "this member was declared dead");
    return Reason::kRefusedDead;
  }
  member.heard_ms = turn.now_ms;
  if (envelope.has_heartbeat()) {
    return on_heartbeat(turn, member, envelope.generation(), envelope.heartbeat());
  }
  if (const Reason reason = fence(turn, member, envelope); reason != Reason::kHeard) return reason;
  switch (envelope.body_case()) {
    case Envelope::kPromise:
      return on_promise(turn, member, envelope.promise());
    case Envelope::kStepRecords:
      return on_records(turn, member, envelope.step_records());
    case Envelope::kEval:
      return on_eval(turn, member, envelope.eval());
    case Envelope::kCheckpoint:
      return on_checkpoint(turn, member, envelope.checkpoint());
    case Envelope::kLeave:
      return on_leave(turn, member, envelope.leave());
    case Envelope::kPeerSuspect:
      return on_suspect(turn, member, envelope.peer_suspect());
    case Envelope::kStop:
      return on_stop(turn, envelope.stop().reason());
    default:
      return Reason::kRefusedMalformed;
  }
}

Reason after_the_end(Turn& turn, const MessageReceived& event) {
  const Envelope& message = event.envelope;
  if (message.has_register_() || message.has_agent_hello() || message.has_leave()) {
    Envelope goodbye;
    goodbye.mutable_goodbye()->set_exit_code(static_cast<uint32_t>(turn.state.exit_code));
    goodbye.mutable_goodbye()->set_message(turn.state.message);
    turn.send(event.connection, std::move(goodbye));
  }
  return Reason::kRefusedEnded;
}

Reason on_message(Turn& turn, const MessageReceived& event) {
  const Envelope& message = event.envelope;
  if (turn.state.run == RunState::kEnded) return after_the_end(turn, event);
  if (message.has_register_()) return on_register(turn, event.connection, message.register_());
  if (message.has_agent_hello()) {
    return on_agent_hello(turn, event.connection, message.agent_hello());
  }
  if (turn.state.agents.contains(event.connection)) {
    if (message.has_worker_exit()) return on_worker_exit(turn, message.worker_exit());
    if (message.has_stop()) return on_stop(turn, message.stop().reason());
    return message.has_heartbeat() ? Reason::kHeard : Reason::kRefusedMalformed;
  }
  if (Member* member = turn.member_of(event.connection)) return from_member(turn, *member, message);
  tell_evicted(turn, event.connection, "register first");
  return Reason::kRefusedUnregistered;
}

struct Visitor {
  Turn& turn;
  Reason operator()(const MessageReceived& event) const { return on_message(turn, event); }
  Reason operator()(const ConnectionClosed& event) const { return on_closed(turn, event); }
  Reason operator()(const Tick&) const { return on_tick(turn); }
  Reason operator()(const StopSignal& event) const { return on_stop(turn, event.why); }
};

}  // namespace

void Turn::send(ConnectionId to, wire::Envelope envelope) {
  if (to == 0) return;
  envelope.set_term(state.term);
  envelope.set_generation(state.generation);
  actions.push_back(Send{to, std::move(envelope)});
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
  const Mark before = mark_of(state, event);
  Decision decision;
  decision.state = std::move(state);
  Turn turn{now_ms, decision.state, options, decision.actions};
  decision.reason = std::visit(Visitor{turn}, event);
  check_invariants(before, event, decision, options);
  return decision;
}

}  // namespace lockstep::coordinator
