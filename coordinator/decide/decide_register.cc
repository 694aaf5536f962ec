// A process wants in, or is back.
#include <algorithm>

#include "comm/base/limits.h"
#include "comm/base/planted_bug.h"
#include "coordinator/checkpoint/numerics.h"
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

// A script has no keys that name its data.
std::string facts_difference(const wire::DataFacts& stored, const wire::DataFacts& seen,
                             bool of_script) {
  const auto differ = [](const char* what, const auto& a, const auto& b) {
    return std::string(what) + " is " + a + " in this run and " + b + " there";
  };
  if (stored.train_fingerprint() != seen.train_fingerprint()) {
    return differ(
        of_script ? "the fingerprint of the training data" : "the fingerprint of data.train",
        stored.train_fingerprint(), seen.train_fingerprint());
  }
  if (stored.eval_fingerprint() != seen.eval_fingerprint()) {
    return differ(
        of_script ? "the fingerprint of the evaluation data" : "the fingerprint of data.eval",
        stored.eval_fingerprint(), seen.eval_fingerprint());
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

std::vector<std::string> lines_of(const wire::Register& m) {
  return {m.fingerprint().lines().begin(), m.fingerprint().lines().end()};
}

Layout layout_of(const Turn& turn, MemberId member, const wire::Register& m) {
  Layout layout{
      member, lines_of(m), m.flat_elements(), {m.tensor_bounds().begin(), m.tensor_bounds().end()},
      {},     {}};
  if (!turn.options.is_script_open()) return layout;
  layout.facts = m.facts();
  layout.script = script_identity(m);
  return layout;
}

// Nobody may hold the door shut for the rest once training is under way. In an open term none is.
Reason refuse_misfit(Turn& turn, ConnectionId connection, Reason reason, int code,
                     const std::string& why) {
  if ((is_first_start(turn) && turn.state.source_generation == 0) ||
      turn.options.is_script_open()) {
    return refuse_and_end(turn, connection, reason, code, why);
  }
  wire::Envelope envelope;
  envelope.mutable_goodbye()->set_exit_code(static_cast<uint32_t>(code));
  envelope.mutable_goodbye()->set_message(why);
  turn.send(connection, std::move(envelope));
  turn.actions.push_back(CloseConnection{connection});
  turn.note(LogLine::Level::kWarn, "worker_refused", why + "; the run goes on without it");
  return Reason::kRefusedMisfit;
}

void attach(Turn& turn, Member& member, ConnectionId connection, const wire::Register& m) {
  if (member.connection != connection) detach(turn, member);
  member.connection = connection;
  member.data = m.data();
  member.metrics_address = m.metrics_address();
  member.largest_slot = m.largest_slot();
  member.gpu = m.gpu();
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

// The first of a term speaks for those to come: they must be as it is.
Reason check_as_before(Turn& turn, ConnectionId connection, const wire::Register& m) {
  const std::string differs = numerics_difference(lines_of(m), turn.state.base_fingerprint);
  if (!turn.options.exact() || differs.empty()) return Reason::kRegistered;
  const std::string what = name_of(m) + " computes other bits than the run did before: " + differs;
  if (turn.options.job.comm().other_numerics() != "continue") {
    return refuse_misfit(turn, connection, Reason::kEndedFingerprint, 78,
                         what +
                             ". Resume on a machine of the same kind, or accept other bits from "
                             "here on with comm.other_numerics=continue");
  }
  turn.note(LogLine::Level::kWarn, "other_numerics",
            what + "; it goes on (comm.other_numerics is continue)");
  return Reason::kRegistered;
}

// While it is open what a run is, the first member of the term speaks for those to come.
Reason check_open_script(Turn& turn, ConnectionId connection, const wire::Register& m) {
  const State& state = turn.state;
  if (!state.layout || LOCKSTEP_BUG(kOpenNotCompared)) return Reason::kRegistered;
  const Layout& layout = *state.layout;
  const std::string first = describe(state, turn.at(layout.member));
  if (const std::string what = facts_difference(layout.facts, m.facts(), true); !what.empty()) {
    return refuse_misfit(turn, connection, Reason::kEndedFacts, 65,
                         name_of(m) + " reads other data than " + first + ": " + what +
                             ". Give every node the same data set");
  }
  const std::string what = script_difference(layout.script, script_identity(m));
  if (what.empty()) return Reason::kRegistered;
  return refuse_misfit(turn, connection, Reason::kEndedScript, 64,
                       name_of(m) + " trains something else than " + first + ": " + what +
                           ". Give every node the same script, arguments and libraries, and let "
                           "the script depend on nothing else");
}

// What a run is, as its journal has it.
Reason check_as_stored(Turn& turn, ConnectionId connection, const wire::Register& m) {
  const Options& options = turn.options;
  const bool of_script = is_script(options.job.model());
  const std::string other_data = facts_difference(options.facts, m.facts(), of_script);
  if (!other_data.empty()) {
    return refuse_misfit(turn, connection, Reason::kEndedFacts, 65,
                         name_of(m) + " reads other data: " + other_data +
                             (of_script && !options.is_script_open()
                                  ? ". What identifies a run cannot change: give every node the "
                                    "data set of the run, or start a new run in another --run-dir"
                                  : ". Give every node the same data set"));
  }
  if (!of_script || options.is_script_open()) return Reason::kRegistered;
  const std::string what = script_difference(options.script, script_identity(m));
  if (what.empty()) return Reason::kRegistered;
  return refuse_misfit(turn, connection, Reason::kEndedScript, 64,
                       "what identifies a run cannot change: " + what + " (" + name_of(m) +
                           "). Leave it in the script as it was in this run, or start a new run in "
                           "another --run-dir");
}

// kRegistered when it fits to those who are here and to what the run is.
Reason check_fit(Turn& turn, ConnectionId connection, const wire::Register& m) {
  const State& state = turn.state;
  if (!turn.options.facts.open()) {
    const Reason reason = check_as_stored(turn, connection, m);
    if (reason != Reason::kRegistered) return reason;
  }
  if (turn.options.is_script_open()) {
    const Reason reason = check_open_script(turn, connection, m);
    if (reason != Reason::kRegistered) return reason;
  }
  if (turn.options.is_batch_open() && m.largest_slot() == 0) {
    return refuse_misfit(turn, connection, Reason::kEndedLayout, 78,
                         name_of(m) +
                             " has not measured how large a slot fits into its memory, which "
                             "train.global_batch auto needs: it runs another version of lockstep");
  }
  if (const std::string shared = shared_gpu(turn, m); !shared.empty()) {
    return refuse_misfit(turn, connection, Reason::kEndedSharedGpu, 78, name_of(m) + shared);
  }
  if (!state.layout) return check_as_before(turn, connection, m);
  const Layout& layout = *state.layout;
  const Member& other = turn.at(layout.member);
  if (turn.options.exact() && lines_of(m) != layout.fingerprint) {
    return refuse_misfit(
        turn, connection, Reason::kEndedFingerprint, 78,
        name_of(m) + " would compute other bits than " + describe(state, other) + ": " +
            first_difference(lines_of(m), layout.fingerprint) +
            " (the newcomer's value first). Use machines and libraries of one kind, or "
            "comm.numerics=fast in a new run");
  }
  const std::vector<uint64_t> bounds(m.tensor_bounds().begin(), m.tensor_bounds().end());
  if (m.flat_elements() != layout.flat_elements || bounds != layout.tensor_bounds) {
    return refuse_misfit(turn, connection, Reason::kEndedLayout, 78,
                         name_of(m) + " has another gradient layout (" +
                             std::to_string(m.flat_elements()) + " elements) than " +
                             describe(state, other) + " (" + std::to_string(layout.flat_elements) +
                             "): they run different versions of lockstep");
  }
  return Reason::kRegistered;
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

// Its pid belongs to another process now, so it is dead: a container that was made again begins to
// count pids anew. Nothing: there is no such member, or the run goes on to take the newcomer in.
std::optional<Reason> bury_namesake(Turn& turn, const wire::Register& m) {
  State& state = turn.state;
  const auto process = state.by_process.find({m.node(), m.pid()});
  Member* const member = process == state.by_process.end() ? nullptr : turn.find(process->second);
  if (member == nullptr || !is_other_process(*member, m.process())) return std::nullopt;
  member->has_exited = true;
  if (member->state == MemberState::kLeft || member->state == MemberState::kGone) {
    forget_process(state, *member);
    return std::nullopt;
  }
  const std::string what =
      describe(state, *member) + " died: another process has its pid on its machine";
  declare_dead(turn, *member);
  const Reason reason = after_deaths(turn, {member->id}, what, 70);
  const bool is_over = state.run == RunState::kEnded || state.run == RunState::kTermEnded;
  return is_over ? std::optional(reason) : std::nullopt;
}

// What it says of itself may be news: a switch that nobody has reported.
std::optional<Reason> learn(Turn& turn, Member& member, const wire::Register& m) {
  State& state = turn.state;
  if (m.generation() == 0) return std::nullopt;
  if (state.planned && m.generation() == state.planned->generation) {
    if (const Reason reason = adopt_switch(turn, from_wire(m.since())); is_end(reason)) {
      return reason;
    }
  }
  if (is_source(state, member)) note_lived(turn, member, m.generation());
  return std::nullopt;
}

Reason reconnect(Turn& turn, Member& member, ConnectionId connection, const wire::Register& m) {
  if (member.state == MemberState::kGone) {
    say_goodbye(turn, connection, member.farewell, "it was left out, and was told so before");
    return Reason::kAlreadyCounted;
  }
  if (is_other_process(member, m.process()) || member.pid != m.pid() || member.node != m.node() ||
      member.local_rank != m.local_rank()) {
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
  const bool is_duplicate = member.connection == connection;
  attach(turn, member, connection, m);
  if (const auto reason = learn(turn, member, m)) return *reason;
  push_present(turn, member);
  return is_duplicate ? Reason::kAlreadyCounted : Reason::kReconnected;
}

// What a newcomer can expect.
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
  state.by_process[{member.node, member.pid}] = member.id;
  state.waiting.insert(member.id);
  state.replacements.erase(place_of(member));
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
  if (state.lost_ms) return total_loss(turn, "all workers died", 70);
  return gather(turn, m.member() == 0 ? Reason::kRegistered : Reason::kNewIdentity);
}

}  // namespace lockstep::coordinator
