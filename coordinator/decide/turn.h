// One call of decide(): the state that changes, and the actions that it collects.
//
// Thread-safety: one thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "coordinator/state/action.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"

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
  // Fills in the term and the present generation. Does nothing for connection 0.
  void send(ConnectionId to, wire::Envelope envelope);
  void send_as(ConnectionId to, Generation generation, wire::Envelope envelope);
  // Sends one envelope to several connections.
  void send_to(const std::vector<ConnectionId>& to, Generation generation, wire::Envelope envelope);
  // Journals and logs an error or an end.
  void note(LogLine::Level level, const std::string& kind, const std::string& text);

  Member* member_of(ConnectionId connection);
  Member* find(MemberId id);
  Member& at(MemberId id) { return state.members.at(id); }
  uint32_t wanted() const {
    return state.wanted_workers != 0 ? state.wanted_workers : options.workers;
  }
};

}  // namespace lockstep::coordinator
