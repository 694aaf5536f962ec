#include "coordinator/serve/server_away.h"

namespace lockstep::coordinator {

void Away::note(const Event& event, const State& state, bool is_over) {
  if (const auto* closed = std::get_if<ConnectionClosed>(&event)) {
    const auto agent = state.agents.find(closed->connection);
    if (agent != state.agents.end() && !is_over) agents_.insert(agent->second.node);
  } else if (const auto* message = std::get_if<MessageReceived>(&event)) {
    const wire::Envelope& envelope = message->envelope;
    if (envelope.has_agent_hello()) agents_.erase(envelope.agent_hello().node());
  }
}

}  // namespace lockstep::coordinator
