// A whole run in one process, without coordinator, run directory and recovery, for a script that is
// started by itself. It has the same engine, slots and sums as a run, so it gives the same weights.
//
// Thread-safety: run_alone() is the training thread; the engine's request_stop() ends it from any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "worker/script/script_engine.h"

namespace lockstep {

// A generation of one process, which has every slot.
class AloneGeneration {
 public:
  // `engine` outlives the object.
  explicit AloneGeneration(ScriptEngine& engine);
  ~AloneGeneration();
  AloneGeneration(const AloneGeneration&) = delete;
  AloneGeneration& operator=(const AloneGeneration&) = delete;

  struct Facts {
    uint32_t slots = 0;        // of the run
    uint64_t total_steps = 0;  // of the run
    SkipSet skips;
    bool is_writer = false;  // GenerationView
  };
  // Call once, and then the engine's step().
  Status begin(Facts facts);
  // A step has failed.
  void abort();

 private:
  ScriptEngine& engine_;
  std::vector<std::unique_ptr<Collective>> collectives_;  // one
};

struct AloneEnd {
  std::string weights_sha256;
  bool is_done = false;  // else it was stopped
};

// Prints a line of progress now and then. kBadData for a loss that is no number, naming the step.
// `has_edges`: the script's loop is over run.epochs().
Result<AloneEnd> run_alone(const wire::JobSpec& job, const RunShape& shape, ScriptEngine& engine,
                           bool has_edges);

}  // namespace lockstep
