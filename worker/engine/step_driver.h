// One training step, from its plan to its record, with any SlotComputer.
//
//   plan ─ compute (every slot of this rank; buckets leave meanwhile) ─ finish: sums, votes
//        ─ [check: a slot of another rank again] ─ gate ─ apply ─ record
//
// The driver knows the plan, the order of sums, votes, checks, the gate and the record. The
// SlotComputer knows model, data and state.
//
// INVARIANTS
//  S1 apply() and pass_over() are called between try_enter() and leave() of the gate, and nothing
//     else of a SlotComputer changes its state. If apply() ends the run, the gate hears of it
//     before leave().
//  S2 A step that ends with an error before the gate has changed nothing. An error of apply() or
//     pass_over() leaves the gate taken: the state is unknown, and the process ends.
//  S3 The record of a step is the same on every rank, except for its times (common_hash).
//  S4 Samples stay in hand (WorkInHand) only if the step failed by this rank's own fault and before
//     its sums were there: a failure of apply() is no sample's fault. Where a device sums, its
//     kernels may fail as late as in apply().
//
// Errors: kAborted if the generation's Collective was aborted before the gate, or the gate did not
// open; errors of the SlotComputer.
//
// Thread-safety: one thread drives it. request_stop(), moved_to(), enters() and progress() from any
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/collective.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/plan/step_plan.h"
#include "metrics/base/phase_clock.h"
#include "worker/engine/flat_layout.h"
#include "worker/engine/generation_view.h"
#include "worker/engine/loss_facts.h"
#include "worker/engine/self_check.h"
#include "worker/engine/slot_computer.h"
#include "worker/engine/step_reducer.h"

namespace lockstep {

class StepDriver {
 public:
  // All but `loss` outlive the driver. `shape` may get its global batch until the first
  // generation.
  StepDriver(const wire::JobSpec& job, const RunShape& shape, const FlatLayout& layout,
             LossFacts loss, SlotComputer& computer);

  // `view.phases` is not null. `buffer` and the objects in `path` live until end_generation().
  // kInternal if the view is of another world or model, and there is no generation then.
  Status begin_generation(GenerationView view, StepGate gate, GradientBuffer& buffer,
                          const GradientPath& path);
  // Waits for operations that are still in the Collective; may be called at any time.
  void end_generation();
  // Without a generation: an empty one, without a Collective.
  const GenerationView& view() const { return view_; }

  // The next step. REQUIRES: a generation has begun.
  Result<StepOutcome> step();

  const LossFacts& loss() const { return loss_; }
  // The mean loss of a step, by the sums of its control section.
  double mean_loss(const float* control) const;

  void request_stop() { stop_requested_.store(true, std::memory_order_relaxed); }
  // Something other than a step has moved the state to this point.
  void moved_to(Step applied_steps) { at_step_.store(applied_steps, std::memory_order_relaxed); }
  // An evaluation has scored no batch yet.
  void enters(Phase phase) {
    if (phase != Phase::kTrain) bucket_.store(0, std::memory_order_relaxed);
    phase_.store(phase, std::memory_order_release);
  }
  // `bucket` as `enqueued`: where GPUs sum, the engine knows better.
  Progress progress() const;

 private:
  // One step, from its plan.
  struct StepWork {
    Step step = 0;
    StepPlan plan;
    uint64_t samples = 0;  // of the computed slots
    uint64_t labels = 0;   // as SlotComputer::step_labels()
    const StepMerge* merge = nullptr;
    const MergeSchedule* schedule = nullptr;  // of this rank
    wire::StepRecord record;
    PhaseTotals before;
    std::optional<CheckPlan> check;
    wire::CheckReport found;  // valid if `check` is set
  };
  Result<StepOutcome> run_step();
  StepWork plan_work();
  const StepMerge& merge_of(const StepWork& work);
  Result<StepOutcome> pass_over(StepWork work);
  Status compute_slot(const SlotWork& slot, StepWork& work);
  Status check_others(StepWork& work);
  void clear_in_hand();
  Status apply(StepWork& work);
  Result<StepOutcome> report(StepWork& work);
  PhaseClock& phases() { return *view_.phases; }

  const wire::JobSpec& job_;
  const RunShape& shape_;
  const FlatLayout& layout_;
  const LossFacts loss_;
  SlotComputer& computer_;

  std::atomic<bool> stop_requested_{false};
  std::atomic<Step> at_step_{0};
  std::atomic<Phase> phase_{Phase::kTrain};
  std::atomic<uint32_t> bucket_{0};

  // The state of the present generation.
  GenerationView view_;
  StepGate gate_;
  std::map<uint64_t, StepMerge> merges_;         // by samples of the step: at most two in a run
  std::map<Step, StepMerge> merges_with_skips_;  // of steps with skipped slots
  uint32_t voters_ = 0;                          // ranks that own slots
  std::unique_ptr<StepReducer> reducer_;         // ends first: its lane may use the merges
};

}  // namespace lockstep
