// The training thread: waits for a start, drives the engine through the generation, and reports.
//
//   wait for Start ─▶ connect ─▶ install state ─▶ train ⇄ eval ─▶ final checkpoint ─▶ Leave ─┐
//     ▲  ▲               │  ▲          │            │   │                                    │
//     │  └─ the generation was closed (kAborted) ◀──┘   │ all agree on a planned change:     │
//     │                     └── switched, goes on ◀─────┤ barrier in the old generation      │
//     └── any other error: Leave(FAILED)   Leave(DRAINED) if left out     wait for Goodbye ◀─┘
//
//   A worker that joins connects as soon as the change is planned, and waits there for the others.
//   Code of the script between two epochs runs after the evaluation of the epoch's end
//   (phase_plan.h, "EDGES").
//
// INVARIANTS
//  U1 The gate is opened for a generation only when the state is at its resume point.
//  U2 Every applied step's record is in the queue before the next step begins and before a
//     checkpoint of it is taken.
//  U3 The writer leaves only when its final checkpoint is in the journal.
//  U4 A generation is over in this order: closed when it failed, let go by the engine, its
//     Collective freed. A step that failed may have left the engine's lane inside the Collective.
//  U5 A planned change takes effect only after every member of the old generation has come to its
//     barrier: until then one of them may still read memory that the next step overwrites.
//  U6 Only a member that the start names as a source uses its own state; every other member gets
//     the state from a checkpoint, from the seed, or from the first source.
//  U7 Every member reports every evaluation, before it answers a prepare with a point after it: so
//     no evaluation dies with one member.
//  U8 A worker that has failed to apply a step fails, even if its generation is closed: its state
//     is unknown, so it answers no prepare and enters no generation. A worker whose script has
//     raised fails, too, and enters no generation: Python is gone, and would be asked for other
//     slots, which had no part in it (coordinator/decide/poison.cc).
//  U9 Before a checkpoint is written, and in the steps of a check
//     (comm/run/evaluation/check_after.h), every member reports a hash of its state after the step.
//     The copy that is written has that hash, so a change in between, during an evaluation, does
//     not reach a checkpoint. If an edge follows in this generation, the hash is of the state after
//     it (phase_plan.h, E4).
//  U10 If the script ends the run, no member goes on before all members of the generation stand at
//     that step, and each reports the end first. A planned change does not take effect there.
//
// Thread-safety: run() is the training thread; drop_checkpoints() from any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/collectives/host/host_collective.h"
#include "comm/run/checkpoint/file_ops.h"
#include "comm/wire/control.pb.h"
#include "worker/cuda/device_comm.h"
#include "worker/engine/engine.h"
#include "worker/runner/checkpoint_writer.h"
#include "worker/runner/runner_probe.h"
#include "worker/runner/trace_file.h"
#include "worker/session/apply_gate.h"
#include "worker/session/mailbox.h"
#include "worker/session/phase_plan.h"
#include "worker/session/runner_port.h"

namespace lockstep {

class PhaseClock;

class Runner {
 public:
  struct Options {
    wire::JobSpec job;
    wire::DataFacts facts;
    std::string run_dir;
    std::vector<std::string> fingerprint;  // of the numerics
    int connect_deadline_ms = 60'000;
    bool has_edges = false;  // the script's loop is over run.epochs()
  };
  // All outlive the runner. `on_failure` is called on the training thread after Leave(FAILED).
  struct Parts {
    Engine& engine;
    HostContext& context;
    ApplyGate& gate;
    Mailbox& mailbox;  // starts come from there; its end() ends run()
    RunnerPort& port;
    FileOps& files;
    RunnerProbe& probe;
    PhaseClock* phases;  // for the engine; may be null
    Logger& logger;
    std::function<void(const Status&)> on_failure;
    WorkInHand* in_hand = nullptr;  // for the engine; may be null
    DeviceComm* devices = nullptr;  // gradients are summed over it; null: over the context
    data::PrefetchPolicy* prefetch = nullptr;  // for the engine; may be null
    // Called on the training thread before Leave(FINISHED).
    std::function<void()> on_finish = [] {};
    FlightRecord* flight = nullptr;  // notes what the collectives do; may be null
  };

  Runner(Options options, Parts parts);

  void run();

  // The coordinator needs these checkpoints no more.
  void drop_checkpoints(std::vector<std::string> names) { writer_.drop(std::move(names)); }

 private:
  // The generation to live through, and where it begins if this worker has switched to it already.
  struct Entry {
    StartOrder order;
    std::optional<ResumePoint> since;
  };
  // The entry that follows without a message from the coordinator; nothing: wait for a message.
  using Next = std::optional<Entry>;

  // One generation while it lasts.
  struct Life {
    explicit Life(const Entry& e) : order(e.order), entered(e.since.has_value()) {}
    const StartOrder& order;
    const bool entered;  // the gate is open, since the switch
    uint32_t rank = 0;
    bool is_writer = false;
    PhasePlan plan;
    EvalTrack track;  // until it is installed, as far as the start tells
    std::unique_ptr<Collective> collective;
    std::unique_ptr<DeviceCollective> devices;  // if Parts have them; uses `collective`
    std::vector<uint64_t> bucket_bounds;        // in elements, once connected
    std::optional<ResumePoint> begin;  // none: a worker that joins learns it with the state
  };
  enum class Agreed { kNothing, kStop, kSwitch };

  // runner.cc: a generation from its order to its end.
  Next run_generation(const Entry& entry);
  PhasePlan plan_of(const wire::Start& start) const;
  Result<Life> make_life(const Entry& entry) const;
  Result<Next> live(Life& life);
  Status connect(Life& life);
  Status connect_devices(Life& life);
  void record(Life& life) const;
  std::function<bool()> closes(Generation generation) const;  // asks whether it is closed
  Status enter(const StartOrder& order, const ResumePoint& at);
  Result<std::vector<uint64_t>> plan_buckets_of(const Life& life) const;
  Status begin_engine(Life& life);
  void ended_with(const StartOrder& order, const Status& status, MemberId broken);
  MemberId broken_member(const Life& life) const;

  // runner_state.cc: the state at the point where a generation begins.
  Status install_state(Life& life);
  Status load_state(const Life& life);
  Status check_own_state(const Life& life) const;
  Status transfer_state(Life& life, uint32_t root);
  Status receive_state_from(Life& life, uint32_t root);

  // runner_plan.cc: the phases.
  Result<Next> follow_plan(Life& life);
  Result<Agreed> train_step(Life& life, ResumePoint& at);
  Status end_here(Life& life, const ResumePoint& at);
  Status compare_weights(const Life& life, const ResumePoint& at, bool before_edge);
  void report_check(const Life& life, wire::CheckReport report, bool before_edge);
  Status cross_edge(Life& life, ResumePoint& at);
  Status evaluate(Life& life, ResumePoint& at);
  Status keep_if_best(Life& life, const ResumePoint& at);
  Status final_checkpoint(Life& life, const ResumePoint& at);
  Status submit_checkpoint(Life& life, const ResumePoint& at, bool final);
  Manifest make_manifest(const Life& life, const ResumePoint& at) const;
  Result<Next> switch_over(Life& life, const ResumePoint& at);

  const Options options_;
  const Parts parts_;
  std::string resumed_from_;               // name of the checkpoint the lineage's state began with
  StepProof proof_;                        // of the steps that the engine's state has seen
  EvalTrack track_;                        // of the evaluations that it has seen
  bool has_raised_ = false;                // the script has
  std::pair<Step, Generation> submitted_;  // the newest checkpoint of this process
  std::pair<Step, uint64_t> compared_;     // steps applied, and the hash that was reported last
  std::optional<wire::CheckReport> held_check_;  // until the edge is over; of this generation
  CheckpointWriter writer_;
  TraceFile trace_;
};

}  // namespace lockstep
