// What the parts of decide() share. Not for others.
//
// A Turn holds the state being changed and collects actions; every on_* returns the reason.
#pragma once

#include <string>
#include <vector>

#include "coordinator/decide.h"

namespace lockstep::coordinator {

struct Turn {
  int64_t now_ms;
  State& state;
  const Options& options;
  std::vector<Action>& actions;

  void persist(JournalEntry entry) { actions.push_back(Persist{std::move(entry)}); }
  void log(LogLine::Level level, std::string event, std::string message) {
    actions.push_back(LogLine{level, std::move(event), std::move(message)});
  }
  // Fills term and generation in; does nothing for connection 0.
  void send(ConnectionId to, wire::Envelope envelope);
  // Journals and logs something that went wrong or ended.
  void note(LogLine::Level level, const std::string& kind, const std::string& text);

  Member* member_of(ConnectionId connection);
  Member* find(MemberId id);
};

// Register, AgentHello
Reason on_register(Turn& turn, ConnectionId connection, const wire::Register& message);
Reason on_agent_hello(Turn& turn, ConnectionId connection, const wire::AgentHello& message);
// From a member of the present generation, fences passed
Reason on_promise(Turn& turn, Member& member, const wire::Promise& message);
Reason on_records(Turn& turn, Member& member, const wire::StepRecords& message);
Reason on_eval(Turn& turn, Member& member, const wire::EvalReport& message);
Reason on_checkpoint(Turn& turn, Member& member, const wire::CheckpointReport& message);
Reason on_leave(Turn& turn, Member& member, const wire::Leave& message);
Reason on_suspect(Turn& turn, Member& member, const wire::PeerSuspect& message);
// From anywhere
Reason on_heartbeat(Turn& turn, Member& member, Generation generation,
                    const wire::Heartbeat& message);
Reason on_worker_exit(Turn& turn, const wire::WorkerExit& message);
Reason on_closed(Turn& turn, const ConnectionClosed& event);
Reason on_tick(Turn& turn);
Reason on_stop(Turn& turn, const std::string& why);

// generation.cc
// Prepares the next generation from all registered members.
void prepare_generation(Turn& turn, const std::string& why);
// REQUIRES: all members of the prepared generation have promised.
Reason start_generation(Turn& turn);
// Pushes to one member again what the present generation is. Idempotent for it.
void push_present(Turn& turn, const Member& member);

// finish.cc
// Closes what is open in the journal, sends everybody a Goodbye and ends the run.
void end_run(Turn& turn, int code, const std::string& message);
// Ends the run if every member has left and the final checkpoint is in the journal.
Reason finish_if_all_left(Turn& turn, Reason otherwise);
// "…; the checkpoint step-… of step 1500 remains; to go on: lockstep run …"
std::string what_remains(const Turn& turn);
// "worker of rank 1 (member 2, node n, pid 42)"
std::string describe(const State& state, const Member& member);

// decide_death.cc
// The one place that says what a death means.
Reason on_death(Turn& turn, Member& member, const std::string& cause, Reason reason, int code);

}  // namespace lockstep::coordinator
