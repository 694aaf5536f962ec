// The training thread: waits for a start, drives the engine through the generation, and reports.
//
//   wait for Start ─▶ connect ─▶ install state ─▶ train ⇄ eval ─▶ final checkpoint ─▶ Leave ─┐
//        ▲                │            │            │                                        │
//        └── the generation was closed (kAborted) ◀─┘          wait for Goodbye ◀────────────┘
//        any other error: Leave(FAILED), wait for Goodbye
//
// INVARIANTS
//  U1 The gate is opened for a generation only when the state is at its resume point.
//  U2 Every applied step's record is in the queue before the next step begins and before a
//     checkpoint of it is taken.
//  U3 The writer leaves only when its final checkpoint is in the journal.
//  U4 A generation is over in this order: closed when it failed, let go by the engine, its
//  Collective
//     freed. A step that failed may have left the engine's lane inside the Collective.
//
// Thread-safety: run() is the training thread; drop_checkpoints() from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/collectives/host/host_collective.h"
#include "comm/wire/control.pb.h"
#include "worker/checkpoint/file_ops.h"
#include "worker/engine/engine.h"
#include "worker/session/apply_gate.h"
#include "worker/session/checkpoint_writer.h"
#include "worker/session/mailbox.h"
#include "worker/session/run_plan.h"
#include "worker/session/runner_port.h"
#include "worker/session/runner_probe.h"

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
  };

  Runner(Options options, Parts parts);

  void run();

  // The coordinator needs these checkpoints no more.
  void drop_checkpoints(std::vector<std::string> names) { writer_.drop(std::move(names)); }

 private:
  // One generation while it lasts.
  struct Life {
    explicit Life(const StartOrder& the_order) : order(the_order) {}
    const StartOrder& order;
    uint32_t rank = 0;
    bool is_writer = false;
    RunPlan plan;
    std::unique_ptr<Collective> collective;
    Step first_step = 0;
  };

  Status run_generation(const StartOrder& order);
  Status live(Life& life);
  Result<Life> make_life(const StartOrder& order) const;
  Status connect(Life& life);
  Status install_state(const Life& life, const ResumePoint& at);
  Status begin_engine(Life& life);
  Status follow_plan(Life& life, ResumePoint at);
  Status train_step(Life& life, ResumePoint& at, bool& stop);
  Status evaluate(Life& life, ResumePoint& at);
  Status final_checkpoint(Life& life, const ResumePoint& at);
  Status submit_checkpoint(Life& life, const ResumePoint& at, bool final);
  Manifest make_manifest(const Life& life, const ResumePoint& at) const;
  void ended_with(const StartOrder& order, const Status& status);

  const Options options_;
  const Parts parts_;
  std::string resumed_from_;  // name of the checkpoint the state began with
  CheckpointWriter writer_;
};

// What follows what in a run of this job over these data.
RunPlan make_run_plan(const wire::JobSpec& job, const wire::DataFacts& facts, uint64_t total_steps);

}  // namespace lockstep
