// Trains over loopback: one engine per rank, each on a thread of its own, in one process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/collectives/device_collective.h"
#include "comm/collectives/loopback/loopback.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"
#include "data/dataset/dataset.h"
#include "metrics/files/trace_log.h"
#include "worker/engine/engine.h"

namespace lockstep::testing {

// Small images of noise around a pattern per class, so that there is something to learn.
std::unique_ptr<data::Dataset> make_patterns(uint32_t samples, uint32_t side = 12,
                                             uint32_t classes = 3);

// Sequences of `block` bytes of text: a few words again and again, in an order of chance.
// `vocab`: of bytes, 256 where it is 0.
std::unique_ptr<data::Dataset> make_text(uint32_t samples, uint32_t block, uint32_t vocab = 0);

// adamw, exact; 4 slots of a global batch of 20.
wire::JobSpec small_job(const std::string& model, const std::string& precision = "");
// Two blocks for sequences of `block` tokens.
wire::JobSpec small_gpt2(uint32_t block, const std::string& precision = "");

// Contiguous runs, as even as possible.
std::vector<SlotRun> even_runs(uint32_t slots, uint32_t ranks);

struct TrainResult {
  std::vector<double> losses;  // by step, of rank 0; others are checked to agree
  std::vector<uint64_t> common_hashes;
  std::string state;    // bytes of every tensor of the boundary state, of rank 0
  std::string weights;  // bytes of parameters and buffers only
};

class LoopbackWorld {
 public:
  // `bucket_bytes` 0: one bucket. `modules`: by rank, where its engine computes; empty: the CPU.
  // Fails the test when an engine cannot be made.
  LoopbackWorld(const wire::JobSpec& job, const data::Dataset& train, std::vector<SlotRun> runs,
                uint64_t bucket_bytes = 0, const data::Dataset* eval = nullptr,
                const std::vector<DeviceModule*>& modules = {});
  // Every rank reads data of its own: train[rank].
  LoopbackWorld(const wire::JobSpec& job, const std::vector<const data::Dataset*>& train,
                std::vector<SlotRun> runs, uint64_t bucket_bytes = 0);

  Engine& engine(uint32_t rank) { return *engines_[rank]; }
  Collective& collective(uint32_t rank) { return *collectives_[rank]; }
  uint32_t ranks() const { return static_cast<uint32_t>(runs_.size()); }

  // Replaces the Collective that an engine gets, for planting faults.
  using Wrap = std::function<std::unique_ptr<Collective>(std::unique_ptr<Collective>,
                                                         const std::vector<GradientBuffer*>&)>;

  // Devices sum among themselves, and nothing of it is there before it is waited for.
  bool connects_devices = false;
  // Called on a rank's thread after it has enqueued the sum of a bucket there; may be empty.
  std::function<void(uint32_t rank)> on_enqueued;

  SkipSet skips;          // of the generations that begin from here on
  uint64_t bucket_bytes;  // of these generations, too

  std::vector<std::string> notes;  // what rank 0 said for the log

  std::vector<TraceLog*> traces;  // by rank, of these generations, too; empty: none

  // Asked by every rank's engine for its vote; may be empty.
  std::function<bool(uint32_t rank)> wants_switch;
  bool keeps_inputs = false;  // GenerationView

  // The gate around a rank's applies.
  using GateOf = std::function<StepGate(uint32_t rank)>;

  // A new generation on all ranks; the one before, if any, is aborted.
  void begin_generation(uint64_t total_steps, const GateOf& gate_of = {}, const Wrap& wrap = {});

  // All ranks train up to `steps` applied steps; fails the test on errors or disagreement.
  TrainResult train_to(Step steps);

  // One step on every rank, errors and all, by rank.
  std::vector<Result<StepOutcome>> step_all();

  std::vector<Result<wire::EvalReport>> evaluate_all();

  TrainResult result() const { return result_; }

 private:
  void connect_devices();
  template <typename T>
  std::vector<Result<T>> on_all(Result<T> (Engine::*call)());

  const std::vector<SlotRun> runs_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::unique_ptr<Collective>> collectives_;
  std::vector<std::unique_ptr<DeviceCollective>> devices_;  // by rank, or none
  Generation generation_ = 0;
  TrainResult result_;
};

// A whole run of `steps` steps, in one generation.
TrainResult train(const wire::JobSpec& job, const data::Dataset& dataset,
                  const std::vector<SlotRun>& runs, Step steps, uint64_t bucket_bytes = 0,
                  const SkipSet& skips = {});

// A run of `steps` steps on one rank has finite losses; on 2, 3 and 4 it has the same losses and
// the same state, in several buckets.
void expect_same_bits(const wire::JobSpec& job, const data::Dataset& dataset, Step steps);

// By parameter: whether its bytes after one step of SGD, of gradients that are the same in both
// runs, are others with optimizer.spare_vectors than without, because it does not decay.
struct SparedParameter {
  std::string name;
  size_t dimensions = 0;
  bool is_spared = false;
};
std::vector<SparedParameter> find_spared(wire::JobSpec job, const data::Dataset& dataset);

// Bytes of the state's tensors, padding left out.
std::string state_bytes(Engine& engine, bool with_optimizer);

// Makes an engine over a plain buffer, or returns why not.
Result<std::unique_ptr<Engine>> make_engine(const wire::JobSpec& job, const data::Dataset& train,
                                            const data::Dataset* eval = nullptr,
                                            DeviceModule* module = nullptr);

}  // namespace lockstep::testing
