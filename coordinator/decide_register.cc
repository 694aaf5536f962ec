// A process wants in, or is back.
#include <algorithm>

#include "coordinator/decide_internal.h"

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

// The run cannot get its workers: the newcomer is told first, then everybody.
Reason refuse_and_end(Turn& turn, ConnectionId connection, Reason reason, int code,
                      const std::string& why) {
  wire::Envelope envelope;
  envelope.mutable_goodbye()->set_exit_code(static_cast<uint32_t>(code));
  envelope.mutable_goodbye()->set_message(why);
  turn.send(connection, std::move(envelope));
  end_run(turn, code, why);
  return reason;
}

std::string name_of(const wire::Register& m) {
  return "worker " + std::to_string(m.local_rank()) + " on " + m.node() + " (pid " +
         std::to_string(m.pid()) + ")";
}

// The first line in which two sorted lists of "key=value" differ, from both sides.
std::string first_difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const size_t common = std::min(a.size(), b.size());
  const auto [left, right] =
      std::mismatch(a.begin(), a.begin() + static_cast<long>(common), b.begin());
  const std::string x = left == a.end() ? "(nothing)" : "\"" + *left + "\"";
  const std::string y = right == b.end() ? "(nothing)" : "\"" + *right + "\"";
  return "there " + x + ", here " + y;
}

std::string facts_difference(const wire::DataFacts& stored, const wire::DataFacts& seen) {
  const auto differ = [](const char* what, const auto& a, const auto& b) {
    return std::string(what) + " is " + a + " in this run and " + b + " there";
  };
  if (stored.train_fingerprint() != seen.train_fingerprint()) {
    return differ("the fingerprint of data.train", stored.train_fingerprint(),
                  seen.train_fingerprint());
  }
  if (stored.eval_fingerprint() != seen.eval_fingerprint()) {
    return differ("the fingerprint of data.eval", stored.eval_fingerprint(),
                  seen.eval_fingerprint());
  }
  if (stored.train_samples() != seen.train_samples()) {
    return differ("the number of training samples", std::to_string(stored.train_samples()),
                  std::to_string(seen.train_samples()));
  }
  if (stored.eval_samples() != seen.eval_samples()) {
    return differ("the number of evaluation samples", std::to_string(stored.eval_samples()),
                  std::to_string(seen.eval_samples()));
  }
  return {};
}

void attach(Turn& turn, Member& member, ConnectionId connection, const wire::Register& m) {
  if (member.connection != 0 && member.connection != connection) {
    turn.state.by_connection.erase(member.connection);
    turn.actions.push_back(CloseConnection{member.connection});
  }
  member.connection = connection;
  member.data = m.data();
  member.metrics_address = m.metrics_address();
  member.heard_ms = turn.now_ms;
  turn.state.by_connection[connection] = member.id;
  wire::Envelope envelope;
  wire::Registered* registered = envelope.mutable_registered();
  registered->set_member(member.id);
  *registered->mutable_job() = turn.options.job;
  registered->set_run_dir(turn.options.run_dir);
  turn.send(connection, std::move(envelope));
}

Member* known_member(Turn& turn, ConnectionId connection, const wire::Register& m) {
  if (Member* member = turn.member_of(connection)) return member;
  if (m.member() != 0) return turn.find(m.member());
  // It may have lost the connection before it learnt its id.
  for (auto& [id, member] : turn.state.members) {
    if (member.node == m.node() && member.local_rank == m.local_rank() && member.pid == m.pid()) {
      return &member;
    }
  }
  return nullptr;
}

Reason reconnect(Turn& turn, Member& member, ConnectionId connection, const wire::Register& m) {
  if (member.state == MemberState::kDead) {
    return refuse(turn, connection, Reason::kRefusedDead,
                  name_of(m) + " was declared dead and cannot come back under its old id");
  }
  if (member.pid != m.pid() || member.node != m.node() ||
      (m.member() != 0 && m.member() != member.id)) {
    return refuse(turn, connection, Reason::kRefusedMalformed,
                  name_of(m) + " claims the id of " + describe(turn.state, member));
  }
  if (m.generation() > turn.state.generation) {
    return refuse(turn, connection, Reason::kRefusedFuture,
                  name_of(m) + " knows generation " + std::to_string(m.generation()) +
                      ", which this coordinator never started");
  }
  const bool is_duplicate = member.connection == connection;
  attach(turn, member, connection, m);
  push_present(turn, member);
  return is_duplicate ? Reason::kAlreadyCounted : Reason::kReconnected;
}

// kRegistered when it fits to those who are here and to what the run is.
Reason check_newcomer(Turn& turn, ConnectionId connection, const wire::Register& m) {
  if (m.flat_elements() == 0 || m.node().empty() || m.pid() == 0) {
    return refuse(turn, connection, Reason::kRefusedMalformed,
                  name_of(m) + " registered without node, pid or size of its gradients");
  }
  if (const std::string what = facts_difference(turn.options.facts, m.facts()); !what.empty()) {
    return refuse_and_end(
        turn, connection, Reason::kEndedFacts, 65,
        name_of(m) + " reads other data: " + what + ". Give every node the same data set");
  }
  for (const auto& [id, other] : turn.state.members) {
    if (other.state == MemberState::kDead) continue;
    const std::vector<std::string> lines(m.fingerprint().lines().begin(),
                                         m.fingerprint().lines().end());
    if (turn.options.exact() && lines != other.fingerprint) {
      return refuse_and_end(
          turn, connection, Reason::kEndedFingerprint, 78,
          name_of(m) + " would compute other bits than " + describe(turn.state, other) + ": " +
              first_difference(lines, other.fingerprint) +
              " (first what the newcomer has). Use machines and libraries of one kind, or "
              "comm.numerics=fast in a new run");
    }
    const std::vector<uint64_t> bounds(m.tensor_bounds().begin(), m.tensor_bounds().end());
    if (m.flat_elements() != other.flat_elements || bounds != other.tensor_bounds) {
      return refuse_and_end(
          turn, connection, Reason::kEndedLayout, 78,
          name_of(m) + " has another gradient layout (" + std::to_string(m.flat_elements()) +
              " elements) than " + describe(turn.state, other) + " (" +
              std::to_string(other.flat_elements) + "): they are not the same version of lockstep");
    }
  }
  return Reason::kRegistered;
}

uint32_t living_members(const State& state) {
  return static_cast<uint32_t>(
      std::count_if(state.members.begin(), state.members.end(),
                    [](const auto& entry) { return entry.second.state != MemberState::kDead; }));
}

}  // namespace

Reason on_register(Turn& turn, ConnectionId connection, const wire::Register& m) {
  State& state = turn.state;
  if (!m.run_id().empty() && m.run_id() != state.run_id) {
    return refuse(
        turn, connection, Reason::kRefusedOtherRun,
        name_of(m) + " belongs to run \"" + m.run_id() + "\", this is \"" + state.run_id + "\"");
  }
  if (Member* member = known_member(turn, connection, m)) {
    return reconnect(turn, *member, connection, m);
  }
  if (state.run != RunState::kGathering || living_members(state) >= turn.options.workers) {
    return refuse(turn, connection, Reason::kRefusedFull,
                  name_of(m) + " is one too many: the run has its " +
                      std::to_string(turn.options.workers) + " workers");
  }
  if (const Reason reason = check_newcomer(turn, connection, m); reason != Reason::kRegistered) {
    return reason;
  }
  Member member;
  member.id = state.next_member++;
  member.node = m.node();
  member.local_rank = m.local_rank();
  member.pid = m.pid();
  member.fingerprint.assign(m.fingerprint().lines().begin(), m.fingerprint().lines().end());
  member.flat_elements = m.flat_elements();
  member.tensor_bounds.assign(m.tensor_bounds().begin(), m.tensor_bounds().end());
  turn.persist(MemberEntry{member.id, state.term, member.node, member.local_rank, member.pid});
  turn.log(LogLine::Level::kInfo, "member_registered",
           name_of(m) + " is member " + std::to_string(member.id));
  Member& stored = state.members[member.id] = std::move(member);
  attach(turn, stored, connection, m);
  if (living_members(state) < turn.options.workers) return Reason::kRegistered;
  prepare_generation(turn, "all workers are here");
  return Reason::kPrepared;
}

Reason on_agent_hello(Turn& turn, ConnectionId connection, const wire::AgentHello& m) {
  if (!m.run_id().empty() && m.run_id() != turn.state.run_id) {
    return refuse(turn, connection, Reason::kRefusedOtherRun,
                  "the agent of " + m.node() + " belongs to run \"" + m.run_id() + "\"");
  }
  turn.state.agents[connection] = Agent{m.node(), m.pid(), m.workers()};
  turn.state.lost_agents.erase(m.node());
  return Reason::kHeard;
}

}  // namespace lockstep::coordinator
