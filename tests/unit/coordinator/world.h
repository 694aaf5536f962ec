// A small world around decide(): options, a state, and short ways to say what happens.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/decide.h"
#include "coordinator/journal_memory.h"
#include "worker/checkpoint/store.h"

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

class World {
 public:
  explicit World(Options o = small_options(), Beginning b = first_term()) : options(std::move(o)) {
    state = begin_state(b, now_ms);
  }

  Reason happen(Event event) {
    Decision decision = decide(now_ms, std::move(state), event, options);
    state = std::move(decision.state);
    actions = std::move(decision.actions);
    std::vector<JournalEntry> entries;
    for (const Action& action : actions) {
      if (const auto* p = std::get_if<Persist>(&action)) entries.push_back(p->entry);
      if (const auto* h = std::get_if<AppendHistory>(&action)) history.push_back(h->step);
      if (const auto* e = std::get_if<EndRun>(&action)) ends.push_back(*e);
    }
    EXPECT_TRUE(journal.commit(entries, 0).is_ok());
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

  Reason promise(ConnectionId c, Generation g = 0) {
    wire::Envelope e;
    e.mutable_promise()->set_generation(g == 0 ? state.generation : g);
    return say(c, e);
  }

  wire::Envelope records(ConnectionId c, uint64_t batch, Step from, Step to,
                         uint64_t hash = 7) const {
    wire::Envelope e;
    e.mutable_step_records()->set_batch(batch);
    for (Step step = from; step < to; ++step) {
      wire::StepRecord* r = e.mutable_step_records()->add_records();
      const data::StepPlan plan = data::plan_step(options.shape, step);
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

  Reason checkpoint(ConnectionId c, Step step, bool final = false, const std::string& error = "") {
    wire::Envelope e;
    wire::CheckpointReport* m = e.mutable_checkpoint();
    m->set_step(step);
    m->set_name(checkpoint_name({step, state.generation, state.by_connection.at(c)}));
    m->set_manifest_sha256("m");
    m->set_weights_sha256("w");
    m->set_final(final);
    m->set_error(error);
    return say(c, e);
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

  Reason hello(ConnectionId c) {
    wire::Envelope e;
    e.mutable_agent_hello()->set_node("n");
    return say(c, e);
  }
  Reason exit(ConnectionId agent, uint32_t pid, int code, int signal,
              const std::string& words = "") {
    wire::Envelope e;
    e.mutable_worker_exit()->set_pid(pid);
    e.mutable_worker_exit()->set_exit_code(code);
    e.mutable_worker_exit()->set_signal(signal);
    e.mutable_worker_exit()->set_last_words(words);
    return say(agent, e);
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

  void train() {  // both workers, up to the start
    join(1);
    join(2);
    promise(1);
    EXPECT_EQ(promise(2), Reason::kStarted);
  }

  // What was sent to a connection by the last event.
  std::vector<wire::Envelope> sent(ConnectionId to) const {
    std::vector<wire::Envelope> found;
    for (const Action& action : actions) {
      const auto* send = std::get_if<Send>(&action);
      if (send != nullptr && send->to == to) found.push_back(send->envelope);
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
};

}  // namespace lockstep::coordinator
