// A small world around decide(): options, a state, and short ways to say what happens.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/run/checkpoint/store.h"
#include "comm/wire/in_hand.h"
#include "coordinator/decide/begin_state.h"
#include "coordinator/decide/decide.h"
#include "coordinator/journal/journal_memory.h"

namespace lockstep::coordinator {

inline Options small_options(uint32_t workers = 2, uint64_t max_steps = 4) {
  wire::JobSpec job;
  job.set_job("test");
  job.mutable_train()->set_global_batch(4);
  job.mutable_train()->set_slots(4);
  job.mutable_train()->set_max_steps(max_steps);
  job.mutable_comm()->set_numerics("exact");
  job.mutable_comm()->set_bucket_mb(1);
  job.mutable_checkpoint()->set_keep(2);
  job.mutable_cluster()->set_workers(workers);
  job.mutable_cluster()->set_start_timeout_s(60);
  job.mutable_cluster()->set_lease_s(5);
  job.mutable_cluster()->set_grace_s(10);
  job.mutable_cluster()->set_min_wait_s(30);
  job.mutable_data()->mutable_eval()->set_path("data");
  wire::DataFacts facts;
  facts.set_train_fingerprint("aa");
  facts.set_train_samples(100);
  return make_options(job, facts, "/run");
}

inline Beginning first_term() {
  Beginning beginning;
  beginning.run_id = "test";
  return beginning;
}

inline Beginning second_term() {
  Beginning beginning = first_term();
  beginning.term = 2;
  return beginning;
}

class World {
 public:
  explicit World(Options o = small_options(), const Beginning& b = first_term())
      : options(std::move(o)) {
    state = begin_state(b, now_ms);
  }

  bool sees_checkpoints = true;  // those that it reports; else ReadManifest gets no answer

  Reason happen(const Event& event) {
    Decision decision = decide(now_ms, std::move(state), event, options);
    state = std::move(decision.state);
    actions = std::move(decision.actions);
    std::vector<JournalEntry> entries;
    for (const Action& action : actions) {
      if (const auto* p = std::get_if<Persist>(&action)) entries.push_back(p->entry);
      if (const auto* h = std::get_if<AppendHistory>(&action)) history.push_back(h->step);
      if (const auto* e = std::get_if<EndRun>(&action)) ends.push_back(*e);
      if (const auto* e = std::get_if<EndTerm>(&action)) term_ends.push_back(*e);
    }
    EXPECT_TRUE(journal.commit(entries, 0).is_ok());
    is_switched = is_switched || decision.reason == Reason::kSwitched;
    is_regrouped = is_regrouped || decision.reason == Reason::kRegrouped;
    return decision.reason;
  }

  Reason say(ConnectionId from, wire::Envelope envelope) {
    if (envelope.term() == 0) envelope.set_term(state.term);
    if (envelope.generation() == 0) envelope.set_generation(state.generation);
    return happen(MessageReceived{from, std::move(envelope)});
  }

  static wire::Register registration(uint32_t local_rank) {
    wire::Register m;
    m.set_run_id("test");
    m.set_node("n");
    m.set_local_rank(local_rank);
    m.set_pid(1000 + local_rank);
    m.mutable_fingerprint()->add_lines("isa=avx2");
    m.mutable_facts()->set_train_fingerprint("aa");
    m.mutable_facts()->set_train_samples(100);
    m.set_flat_elements(64);
    m.add_tensor_bounds(0);
    m.add_tensor_bounds(64);
    return m;
  }

  Reason join(ConnectionId c, wire::Register m) {
    wire::Envelope e;
    *e.mutable_register_() = std::move(m);
    return happen(MessageReceived{c, std::move(e)});
  }
  Reason join(ConnectionId c) { return join(c, registration(static_cast<uint32_t>(c) - 1)); }

  // An answer without state.
  Reason promise(ConnectionId c, Generation g = 0) {
    wire::Envelope e;
    e.mutable_promise()->set_generation(g == 0 ? state.generation : g);
    return say(c, e);
  }
  // The member has applied `applied` steps, the newest of them in `lived` (0: the last started
  // one).
  Reason promise_at(ConnectionId c, Step applied, Generation lived = 0, Step since = 0) {
    wire::Envelope e;
    wire::Promise* m = e.mutable_promise();
    m->set_generation(state.generation);
    m->set_has_state(true);
    m->mutable_applied()->set_step(applied);
    m->set_lived(lived == 0 ? state.source_generation : lived);
    m->mutable_since()->set_step(
        lived == 0 ? state.lineage.at(state.source_generation).row.first.step : since);
    return say(c, e);
  }

  wire::Envelope records(ConnectionId c, uint64_t batch, Step from, Step to,
                         uint64_t hash = 7) const {
    wire::Envelope e;
    e.mutable_step_records()->set_batch(batch);
    for (Step step = from; step < to; ++step) {
      wire::StepRecord* r = e.mutable_step_records()->add_records();
      const StepPlan plan = plan_step(options.shape, step);
      r->set_step(step);
      r->set_epoch(plan.epoch);
      r->set_samples(plan.samples);
      r->set_loss(1.0 / static_cast<double>(step + c * 0 + 1));
      r->set_common_hash(hash);
      r->mutable_times()->set_forward_us(1000);
    }
    return e;
  }
  Reason report(ConnectionId c, uint64_t batch, Step from, Step to, uint64_t hash = 7) {
    return say(c, records(c, batch, from, to, hash));
  }

  Reason report_of(Generation g, ConnectionId c, uint64_t batch, Step from, Step to,
                   uint64_t hash = 7) {
    wire::Envelope e = records(c, batch, from, to, hash);
    e.set_generation(g);
    return say(c, e);
  }

  Reason checkpoint(ConnectionId c, Step step, bool final = false, const std::string& error = "",
                    Generation g = 0) {
    wire::Envelope e;
    if (g == 0) g = state.generation;
    e.set_generation(g);
    wire::CheckpointReport* m = e.mutable_checkpoint();
    m->set_step(step);
    m->set_name(checkpoint_name({step, g, state.by_connection.at(c)}));
    m->set_manifest_sha256("m");
    m->set_weights_sha256("w");
    m->set_final(final);
    m->set_error(error);
    const Reason reason = say(c, e);
    if (reason != Reason::kCheckpointWritten || !sees_checkpoints) return reason;
    return happen(ManifestRead{m->name(), "m", ""});
  }

  Reason leave(ConnectionId c, wire::Leave::Reason reason, Step step, Code code = Code::kOk,
               const std::string& message = "") {
    wire::Envelope e;
    e.mutable_leave()->set_reason(reason);
    e.mutable_leave()->mutable_applied()->set_step(step);
    e.mutable_leave()->set_code(static_cast<uint32_t>(code));
    e.mutable_leave()->set_message(message);
    return say(c, e);
  }

  // It has left the generation (0: the newest) at a planned change.
  Reason drained(ConnectionId c, Step step, Generation g = 0) {
    wire::Envelope e;
    e.set_generation(g);
    e.mutable_leave()->set_reason(wire::Leave::DRAINED);
    e.mutable_leave()->mutable_applied()->set_step(step);
    return say(c, e);
  }

  // It says itself that it cannot go on.
  Reason fail(ConnectionId c, const std::vector<SlotInHand>& in_hand, const std::string& what = "",
              Code code = Code::kInternal) {
    wire::Envelope e;
    wire::Leave& leave = *e.mutable_leave();
    leave.set_reason(wire::Leave::FAILED);
    leave.set_code(static_cast<uint32_t>(code));
    leave.set_message(what);
    *leave.mutable_in_hand() = to_wire({process_of(999 + static_cast<uint32_t>(c)), in_hand});
    return say(c, e);
  }

  Reason hello(ConnectionId c, const std::vector<uint32_t>& living = {}) {
    wire::Envelope e;
    e.mutable_agent_hello()->set_node("n");
    e.mutable_agent_hello()->set_workers(static_cast<uint32_t>(living.size()));
    for (uint32_t pid : living) e.mutable_agent_hello()->add_living(pid);
    return say(c, e);
  }
  // Killed, and the agent saw it. Members of World have pid 999 + connection.
  Reason kill(ConnectionId c, bool will_restart = false,
              const std::vector<SlotInHand>& in_hand = {}) {
    if (state.agents.empty()) {
      std::vector<uint32_t> living;
      for (const auto& [process, id] : state.by_process) living.push_back(process.second);
      hello(kAgent, living);
    }
    return exit(kAgent, 999 + static_cast<uint32_t>(c), -1, 9, "", will_restart, in_hand);
  }
  Reason suspect(ConnectionId c, MemberId whom) {
    wire::Envelope e;
    e.mutable_peer_suspect()->set_member(whom);
    e.mutable_peer_suspect()->set_what("reset by peer");
    return say(c, e);
  }
  Reason switched(ConnectionId c, Generation g, Step since) {
    wire::Envelope e;
    e.set_generation(g);
    e.mutable_switched()->mutable_since()->set_step(since);
    return say(c, e);
  }
  Reason drain(ConnectionId c) {
    wire::Envelope e;
    e.mutable_drain()->set_reason("SIGTERM");
    return say(c, e);
  }
  Reason command(wire::Command command) {
    wire::Envelope e;
    *e.mutable_command() = std::move(command);
    return say(kCommand, e);
  }
  Reason scale(uint32_t workers) {
    wire::Command m;
    m.set_scale_to(workers);
    return command(std::move(m));
  }
  Reason drain_node(const std::string& node) {
    wire::Command m;
    m.set_drain_node(node);
    return command(std::move(m));
  }
  Reason exit(ConnectionId agent, uint32_t pid, int code, int signal, const std::string& words = "",
              bool will_restart = false, const std::vector<SlotInHand>& in_hand = {}) {
    wire::Envelope e;
    *e.mutable_worker_exit()->mutable_in_hand() = to_wire({process_of(pid), in_hand});
    e.mutable_worker_exit()->set_will_restart(will_restart);
    e.mutable_worker_exit()->set_local_rank(pid % 1000);
    e.mutable_worker_exit()->set_pid(pid);
    e.mutable_worker_exit()->set_exit_code(code);
    e.mutable_worker_exit()->set_signal(signal);
    e.mutable_worker_exit()->set_last_words(words);
    return say(agent, e);
  }

  // The same while all members send heartbeats.
  Reason wait_alive(int64_t ms) {
    for (int64_t waited = 0; waited < ms; waited += 500) {
      beat_all();
      const Reason reason = wait(500);
      if (reason != Reason::kNothingDue) return reason;
    }
    return Reason::kNothingDue;
  }
  const wire::Start& started() const { return state.start; }
  bool is_durable(const std::string& event_kind) const {
    for (const EventEntry& e : journal.events()) {
      if (e.kind == event_kind) return true;
    }
    return false;
  }

  // Time passes in ticks, as in production; gives the first reason that is not idle.
  Reason wait(int64_t ms) {
    for (const int64_t until = now_ms + ms; now_ms < until;) {
      now_ms += 100;
      const Reason reason = happen(Tick{});
      if (reason != Reason::kNothingDue) return reason;
    }
    return Reason::kNothingDue;
  }
  void beat(ConnectionId c) {
    wire::Envelope e;
    e.mutable_heartbeat();
    EXPECT_EQ(say(c, e), Reason::kHeard);
  }

  void train() {  // all workers, up to the start
    for (uint32_t c = 1; c <= options.workers; ++c) join(c);
    for (uint32_t c = 1; c < options.workers; ++c) promise(c);
    EXPECT_EQ(promise(options.workers), Reason::kStarted);
  }
  void beat_all() {
    for (const auto& [connection, member] : state.by_connection) connections_.push_back(connection);
    for (ConnectionId c : connections_) beat(c);
    connections_.clear();
  }

  // The messages that the last event sent to a connection.
  std::vector<wire::Envelope> sent(ConnectionId to) const {
    std::vector<wire::Envelope> found;
    for (const Action& action : actions) {
      const auto* send = std::get_if<Send>(&action);
      if (send != nullptr && send->to == to) found.push_back(*send->envelope);
    }
    return found;
  }

  Options options;
  State state;
  int64_t now_ms = 1000;
  std::vector<Action> actions;
  MemoryJournal journal;
  std::vector<StepEntry> history;
  std::vector<EndRun> ends;
  std::vector<EndTerm> term_ends;
  bool is_switched = false;   // a planned change took effect at some time
  bool is_regrouped = false;  // a death was survived

  static constexpr ConnectionId kAgent = 50;
  static constexpr ConnectionId kCommand = 90;

 private:
  // The number of the newest member with this pid.
  uint64_t process_of(uint32_t pid) const {
    for (auto it = state.members.rbegin(); it != state.members.rend(); ++it) {
      if (it->second.pid == pid) return it->first;
    }
    return 0;
  }

  std::vector<ConnectionId> connections_;
};

}  // namespace lockstep::coordinator
