// The model of a worker's training thread: the Runner's rules (worker/runner/runner.h) as a
// coroutine on the simulator's loop. Gate, plan of the run and port are the real ones. Only
// arithmetic and memory are models: a state is a hash chain (reference.h), and a Collective reads
// and writes the Fabric.
//
//   wait for an order ─▶ connect ─▶ install state ─▶ train ⇄ eval ─▶ final checkpoint ─▶ Leave
//        ▲                                             │ agreed change: barrier, next generation
//        └──────────── the generation was closed ◀─────┘            or Leave(DRAINED)
//
// Orders follow worker/session/mailbox.h: the newest start, and the pending planned change. Orders
// of a closed generation are void.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/run/checkpoint/manifest.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/plan/skip_set.h"
#include "tests/sim/cluster/collective.h"
#include "tests/sim/world/process.h"
#include "tests/sim/world/task.h"
#include "tests/sim/world/waiter.h"
#include "tests/sim/world/world.h"
#include "worker/session/apply_gate.h"
#include "worker/session/mailbox.h"
#include "worker/session/runner_port.h"

namespace lockstep::sim {

class Trainer {
 public:
  struct Parts {
    World& world;
    Process& process;
    ApplyGate& gate;
    RunnerPort& port;
    std::function<void(const Status&)> on_failure;
    std::string place;          // node and local rank, which stay the same in the next process
    std::function<void()> die;  // kill -9 of its own process, a little later
    InHand& in_hand;
  };
  explicit Trainer(Parts parts);
  ~Trainer();

  // ---- calls of the session's host
  void put(StartOrder order);
  void plan(StartOrder order);
  void close(Generation through);  // after the gate has answered
  void forget();                   // a new identity
  void end();
  void acknowledge(const std::string& checkpoint);
  void stall(int64_t ms) { waiter_.stall(ms); }
  // Only an edge waits for it. Elsewhere a poke would change every seed, because it draws numbers.
  void recorded() {
    if (phase_ == Phase::kEdge) waiter_.poke();
  }
  void request_stop() { wants_stop_ = true; }
  // From its next step on, the memory or a processor of this place is at fault, in silence.
  void damage(Damage what) { damage_ = what; }

  const ModelState& state() const { return state_; }
  Phase phase() const { return phase_; }
  // True between the beginning of an evaluation and the gate after it.
  bool is_evaluating() const { return is_evaluating_; }
  bool is_writer() const { return is_writer_; }
  uint32_t buckets_sent() const { return buckets_sent_; }
  Generation generation() const {
    return generation_;
  }  // the generation that it trains in; 0: none

 private:
  struct Life {
    StartOrder order;
    uint32_t rank = 0;
    bool is_writer = false;
    PhasePlan plan;
    EvalTrack track;
    SkipSet skips;
    std::unique_ptr<Collective> collective;
    Step first_step = 0;
    ResumePoint at;
  };
  // The values that members compare after a step (worker/engine/self_check.h).
  struct Check {
    uint32_t slot = 0;
    uint32_t slot_owner = 0;  // rank
    uint32_t bucket = 0;
    uint32_t sum_owner = 0;  // rank
  };
  // The agreement of a step.
  struct Outcome {
    bool stop = false;
    bool change = false;
    bool ends = false;  // the script ends the run
  };

  Task<Status> run();
  Task<Status> run_generation(StartOrder order);
  Task<Status> begin(Life& life);
  Task<Status> connect(Life& life, int64_t deadline_ms);
  Task<Status> install(Life& life);
  Task<Status> install_checkpoint(Life& life);
  Task<Status> transfer(Life& life, uint32_t root);
  Task<Status> follow_plan(Life& life);
  Task<Status> train_step(Life& life, Outcome* outcome);
  Task<Status> compute(Life& life, Collective::Reduced* into);
  Task<Status> apply(Life& life, const Collective::Reduced& reduced, bool* ends);
  Task<Status> end_here(Life& life);
  Task<Status> switch_generation(Life& life, bool* has_left);
  Task<Status> evaluate(Life& life);
  Task<Status> evaluate_with_all(Life& life);
  Task<Status> cross_edge(Life& life);
  Task<Status> keep_if_best(Life& life);
  Task<Status> checkpoint(Life& life, bool is_final);
  void ended_with(const Life& life, const Status& status);

  SlotRun slots_of(const Life& life, uint32_t rank) const;
  bool is_active(const Life& life, uint32_t slot) const;  // in the step in flight
  uint64_t contribution_of(uint32_t slot, uint32_t bucket, uint32_t element);
  Segment::Partial partial_of(const Life& life, uint32_t bucket);
  void take_damage(bool is_after_step);
  Task<Status> compute_slots(const Life& life);
  std::optional<SlotInHand> deadly_slot(const Life& life) const;
  std::optional<Check> plan_check(const Life& life) const;
  uint64_t gradient_hash(uint32_t slot);
  wire::CheckReport check_report(const Life& life, const Check& check,
                                 const Collective::Reduced& reduced);
  void compare_weights(const Life& life, bool before_edge);
  void say_check(const Life& life, wire::CheckReport report, bool before_edge);
  Task<Status> skip_step(Life& life);
  Task<Status> checkpoint_if_due(Life& life, bool is_last);
  wire::StepRecord record_of(const Life& life, const Collective::Reduced& reduced) const;
  void write_now(const Manifest& manifest, const ModelState& state, bool is_final);
  bool can_join() const;
  bool has_plan_for(Generation generation) const;
  bool is_over(Generation generation) const { return has_ended_ || closed_through_ >= generation; }
  Life make_life(StartOrder order) const;

  const Parts parts_;
  World& world_;
  Waiter waiter_;
  std::shared_ptr<Segment> segment_;

  std::optional<StartOrder> start_;
  std::optional<StartOrder> plan_;
  Generation closed_through_ = 0;
  bool has_ended_ = false;
  bool wants_stop_ = false;
  std::string acknowledged_;

  ModelState state_;
  Phase phase_ = Phase::kTrain;
  bool is_evaluating_ = false;
  Generation generation_ = 0;
  bool is_writer_ = false;     // in generation_
  uint32_t buckets_sent_ = 0;  // of the step in flight
  int64_t busy_ms_ = 0;        // computing, in the step in flight
  std::optional<Damage> damage_;
  uint64_t bad_gradients_ = 0;  // not 0: its gradients are wrong, each time in another way
  uint64_t bad_sums_ = 0;       // the same for its sums
  std::map<uint32_t, Segment::Partial> last_try_;  // of the step in flight, by bucket
  std::string resumed_from_;
  EvalTrack track_;
  std::pair<Step, Generation> submitted_;
  std::optional<wire::CheckReport> held_check_;  // as the Runner's
  bool is_writing_ = false;
  std::string written_;  // newest checkpoint, or the error of writing it
  Status write_status_;
  Task<Status> task_;  // last, because it uses all of the above
};

}  // namespace lockstep::sim
