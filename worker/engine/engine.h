// The training engine of one worker: model, optimizer, boundary state, and one step at a time.
//
// The engine does not know the coordinator. Its driver (worker/runner/runner.h) creates it once,
// gives it a generation (a Collective and the slot runs of all ranks), and calls step() until the
// run or the generation ends. The boundary state changes only in apply, inside step(). Apply runs
// between two collectives, under the caller's gate, and is never aborted half-way.
//
// Errors:
// - kAborted if the generation's Collective was aborted before the gate. The state is then the one
//   after the last applied step.
// - kBadData and kNoInput from the data.
// - kConfig for a model that cannot work (BatchNorm over one value).
// - kInternal for LibTorch's exceptions, which stop here.
//
// Thread-safety: one thread drives it. request_stop() and progress() from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/device_collective.h"
#include "comm/run/checkpoint/state_tensor.h"
#include "comm/wire/control.pb.h"
#include "worker/engine/generation_view.h"

namespace at {
class Tensor;
}

namespace lockstep {

struct ModelOutput;
struct WeightTable;

class DeviceModule;
class MemoryMeter;

namespace data {
class Dataset;
struct Batch;
}  // namespace data

// Sees what a forward computes for a batch.
class ForwardObserver {
 public:
  virtual ~ForwardObserver() = default;
  // The output of a layer, by the index of the layer's first parameter.
  virtual void layer(uint32_t parameter, const at::Tensor& output) = 0;
  // Called after all layers.
  virtual void output(const ModelOutput& output) = 0;
};

class Engine {
 public:
  // Makes the gradient memory, so that it can lie in shared memory. Called once with the layout and
  // the number of regions. The engine keeps the buffer.
  using BufferFactory = std::function<Result<std::unique_ptr<GradientBuffer>>(
      const BufferLayout& layout, uint32_t regions)>;

  // `train`, `eval` (may be null) and `module` outlive the engine. `max_slots_per_rank`: the most
  // slots this rank may ever own; the engine reserves regions for them. Weights are initialised
  // from the seed.
  // `module`: where the model computes; null: on the CPU. Gradients are summed in the host's memory
  // in both cases, except for a rank that is alone and for devices that are connected.
  static Result<std::unique_ptr<Engine>> create(const wire::JobSpec& job,
                                                const data::Dataset& train,
                                                const data::Dataset* eval,
                                                uint32_t max_slots_per_rank,
                                                const BufferFactory& make_buffer,
                                                DeviceModule* module = nullptr);
  virtual ~Engine() = default;

  virtual GradientBuffer& gradient_buffer() = 0;
  // The gradient buffer in the device's memory, made at the first call and kept. Null: the model
  // computes on the CPU. Its control section is not used. kNoMemory if it does not fit.
  virtual Result<GradientBuffer*> device_buffer() { return static_cast<GradientBuffer*>(nullptr); }
  // Gives back what device_buffer() took and nothing else needs. A later device_buffer() takes it
  // again, and gives the same object. REQUIRES: no generation has begun; nothing of the device uses
  // the buffer any more.
  virtual void drop_device_buffer() {}
  // Where buckets may be cut: starts of tensors in the flat buffer, and its end; ascending.
  virtual std::vector<uint64_t> tensor_bounds() const = 0;
  // The facts that decide the bits of this worker, as "key=value" lines, sorted
  // (numerics_fingerprint.cc).
  virtual std::vector<std::string> fingerprint() const = 0;

  // Views of the present boundary state, valid until the next call of another function. An engine
  // may have no optimizer state before its first step. An error if the state cannot be had from
  // where it lies.
  virtual Result<std::vector<StateTensor>> state() = 0;
  // hash_of() the boundary state (comm/run/checkpoint/state_hash.h), without a copy of it.
  virtual Result<uint64_t> state_hash() = 0;
  // Makes `state`, the state after `applied_steps` applied steps, this engine's own. Copies by
  // name, from memory that the caller keeps; views of state() are allowed. It takes effect at the
  // next begin_generation(). Errors as install_tensors(), and nothing has changed then.
  virtual Status install_state(std::span<const StateTensor> state, Step applied_steps) = 0;
  virtual Step applied_steps() const = 0;
  // Resets to the initial weights, at step 0: drawn from the seed, and read from model.init.
  // Errors as load_initial_weights().
  virtual Status start_afresh() = 0;
  // False if start_afresh() would change the state: a new engine has not opened model.init yet.
  virtual bool is_afresh() const { return applied_steps() == 0; }
  // The table of the weights that start_afresh() took from model.init; null: none yet.
  virtual const WeightTable* initial_weights() const { return nullptr; }
  // Notes on the model for the user, a sentence each.
  virtual std::vector<std::string> notes() const { return {}; }

  // For a job with train.global_batch auto: finds the samples of the largest slot that fits, by
  // trials (largest_slot.h). The trials leave the state as it was. kConfig if not even the smallest
  // slot fits.
  // `workers_here`: of the run on this node, with this one.
  virtual Result<uint64_t> largest_slot(MemoryMeter& meter, uint32_t workers_here) = 0;
  // Sets the global batch of a job with train.global_batch auto. kConfig as in create(). Call once,
  // before any generation.
  virtual Status set_global_batch(uint64_t samples) = 0;

  // Starts prefetching for the generation from the next step on. Call again for every generation.
  virtual Status begin_generation(const GenerationView& view, StepGate gate) = 0;

  // Lets go of the generation. Afterwards neither the engine nor its threads use the Collective,
  // and the caller may free it. May be called at any time, also twice or without a generation. The
  // next step() or evaluate() needs a begin_generation() before it.
  // REQUIRES: after a failed call, the caller aborts the Collective first. A step that ended early
  // leaves operations in progress, which wait for peers.
  virtual void end_generation() = 0;

  // Computes, reduces and applies the next step. If all slots of the step are skipped, nothing is
  // computed or reduced and no rank votes: the step counts as applied and changes nothing else.
  virtual Result<StepOutcome> step() = 0;

  // Evaluates the whole evaluation set, spread over the ranks of the generation. The result is the
  // same on every rank and for every number of ranks.
  virtual Result<wire::EvalReport> evaluate() = 0;

  // Runs the script's code between two epochs, which may change the boundary state. `is_last`: the
  // run ends after it. Call it under the gate, as apply runs. An error: it failed half-way. Gives
  // whether the script ends the run there, as it does on every member.
  virtual Result<bool> cross_edge(bool is_last) {
    (void)is_last;
    return Status(Code::kInternal, "only the loop of a script has code between two epochs");
  }

  // Shows the observer the forward of a batch of the next step, as step() computes it. Changes
  // nothing. REQUIRES: a generation has begun.
  virtual Status look(const data::Batch&, ForwardObserver&) {
    return {Code::kInternal, "this engine shows no forward"};
  }

  // From now on every step votes to stop; see StepOutcome::all_want_stop.
  virtual void request_stop() = 0;
  virtual Progress progress() const = 0;
};

}  // namespace lockstep
