// The Engine of a script: Python computes slots and applies steps, and the StepDriver does the rest
// as for every engine. An order on the desk (desk.h) asks Python for what only Python can do.
//
//   compute()   SLOT ─▶ the loop's body ─ has_samples ─ backward_begins ─ take ... ─▶ reply
//   apply()     sums ─▶ private memory (script_layout.h) ─▶ APPLY ─▶ optimizer.step ... ─▶ reply
//
// With a device (script_device.h) Python writes gradients and statistics itself, to place(), and
// says so: wrote ... instead of take. Where the device sums, APPLY says where the sums are.
//
// INVARIANTS
//  Y1 Parameters and optimizer are Python's. They change in APPLY, INSTALL and EDGE only.
//  Y2 Python never writes where peers read: the sums, which an optimizer may overwrite, are in
//     memory of this process alone (Collective::sum_into), or a copy, which Python makes of sums on
//     a device.
//  Y3 A slot's region is written between backward_begins() and the reply, and is whole then: a
//     gradient that the script did not give is zero. Gradients that nothing asks for by themselves
//     are added where they would be merged (StepReducer::sum_to_add_to), so the region does not
//     have them.
//  Y4 The end of a run by its script does not depend on the ranks: all slots of a step that are not
//     empty have voted for it, or the script ended the run as the step was applied, where every
//     rank does the same.
//  Y5 A slot that members check (train.check_every) is computed twice by its owner, too. An owner
//     that differs from itself ends the run with kConfig: no innocent member is expelled.
//
// train.global_batch auto: not with a script.
//
// Errors: as engine.h says; from Python, the error in its reply.
//
// Thread-safety: as engine.h says for the training thread. The functions for Python are called on
// its main thread while the training thread waits for a reply.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/clock.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/plan/batch_sequence.h"
#include "metrics/base/phase_clock.h"
#include "worker/engine/engine.h"
#include "worker/engine/step_driver.h"
#include "worker/script/desk.h"
#include "worker/script/script_data.h"
#include "worker/script/script_device.h"
#include "worker/script/script_eval.h"
#include "worker/script/script_layout.h"
#include "worker/script/slot_task.h"

namespace lockstep {

// The slot in Python's hands.
struct SlotInWork {
  SlotPort* port = nullptr;  // null: the region is private
  float* region = nullptr;   // null: backward has not begun
  float* sum = nullptr;      // where gradients are added; null: they go to the region
  float* place = nullptr;    // of the device, where Python writes them; null: there is none
  bool may_add = false;      // nothing asks for the gradients of this slot by themselves
  ls_task task{};
  ScriptData::BatchRef batch;  // of the job's own data
  uint64_t digest = 0;
  bool has_digest = false;
  Status closed;                    // not ok: the generation is over
  std::vector<uint32_t> takes;      // by parameter
  std::vector<bool> has_statistic;  // by statistic
};

class ScriptEngine final : public Engine, private SlotComputer {
 public:
  struct Parts {
    const wire::JobSpec& job;
    RunShape shape;
    OrderSpec order;
    ScriptLayout& layout;
    Desk& desk;
    std::vector<std::string> fingerprint;  // sorted
    std::vector<double> lrs;               // of the first step of each turn
    ScriptEvals evals = {};
    ScriptData* data = nullptr;  // of the job's own; null: Python reads samples
    // Hears of every slot that was computed for a step. On the training thread.
    std::function<void(const ls_task& task, double loss)> on_slot = {};
    DeviceModule* module = nullptr;  // where the script computes; null: on the host, or Python
                                     // brings gradients there itself
  };
  // All that `parts` refer to outlives the engine.
  static Result<std::unique_ptr<ScriptEngine>> create(Parts parts,
                                                      const BufferFactory& make_buffer);

  GradientBuffer& gradient_buffer() override { return *buffer_; }
  Result<GradientBuffer*> device_buffer() override;
  void drop_device_buffer() override;
  std::vector<uint64_t> tensor_bounds() const override { return flat().tensor_bounds(); }
  std::vector<std::string> fingerprint() const override;
  Result<std::vector<StateTensor>> state() override;
  Result<uint64_t> state_hash() override;
  Status install_state(std::span<const StateTensor> state, Step applied_steps) override;
  Step applied_steps() const override { return applied_; }
  Status start_afresh() override;
  bool is_afresh() const override { return !has_changed_; }
  Result<uint64_t> largest_slot(MemoryMeter& meter, uint32_t workers_here) override;
  Status set_global_batch(uint64_t samples) override;
  Status begin_generation(const GenerationView& view, StepGate gate) override;
  void end_generation() override;
  Result<StepOutcome> step() override;
  Result<wire::EvalReport> evaluate() override;
  Result<bool> cross_edge(bool is_last) override;
  void request_stop() override { driver_.request_stop(); }
  // A replay makes no evaluations: this one was the last before the next step.
  void was_evaluated(const EvalMark& mark) { evaluated_ = mark; }
  Progress progress() const override;

  // For Python, in a SLOT.
  Status has_samples(std::span<const uint64_t> indices);
  // The slot's batch, where the data are the job's own: as has_samples().
  Result<ScriptData::BatchRef> take_batch();
  // kAborted if the generation is over.
  Status backward_begins();
  Status take(uint32_t parameter, const void* data, DType dtype, uint64_t elements);
  Status take_statistic(uint32_t statistic, std::span<const float> data);
  // With a device, instead of the two: where the slot's gradients and statistics go, since
  // backward_begins(); null: there is no device.
  Result<float*> place() const;
  // In this order, for each that Python writes there, on `stream` of the device. The write is on
  // its way when wrote() refuses it; the step then fails, and no rank applies it (step_reducer.h,
  // R6).
  Status writes_on(void* stream);
  Status wrote(uint32_t parameter, uint64_t elements);
  Status wrote_statistic(uint32_t statistic, uint64_t elements);
  // In an APPLY, around what reads sums of the device on this stream.
  Status reads_on(void* stream);
  Status has_read(void* stream);
  // Empty: the script evaluates nothing.
  const ScriptEvals& evals() const { return parts_.evals; }
  // For Python, in any order: slots of this rank that come.
  std::vector<ls_task> upcoming(uint32_t most);

 private:
  ScriptEngine(Parts parts, std::unique_ptr<GradientBuffer> buffer,
               std::unique_ptr<ScriptDevice> device);

  double lr(Step step) const override;
  uint64_t step_labels(const StepPlan& plan, Step step, uint64_t samples) override;
  Result<std::optional<uint64_t>> compute(const SlotTask& task, SlotPort& port) override;
  Result<uint64_t> compute_again(const SlotTask& task) override;
  Result<uint64_t> hash_of_slot(const float* region);
  bool ends_here() const override { return ends_here_; }
  bool computes_twice() const override { return true; }
  Result<bool> are_finite(const StepSums& sums) override;
  Result<bool> apply(const StepSums& sums, uint32_t non_empty_slots, double lr) override;
  Status pass_over() override;

  const FlatLayout& flat() const { return parts_.layout.flat(); }
  // kUsage unless a slot is in work.
  Status in_slot() const;
  Status ask_for_slot(const SlotTask& task, SlotPort* port, float* region, bool is_again);
  void has_batch(uint64_t digest);
  Status finish_region(const ls_reply& reply);
  void announce(uint32_t parameter);
  // Notes a gradient that is about to come, or has come: kUsage if it must not.
  Status admit(uint32_t parameter, uint64_t elements);
  Status admit_statistic(uint32_t statistic, uint64_t elements);
  Status leave_out(const FlatTensor& place);
  Result<ls_reply> ask(const ls_order& order);
  void take_lrs(const ls_reply& reply);
  Result<ls_reply> ask_with_slot_in_hand(const ls_order& order);
  PhaseClock& phases() { return *phases_; }

  const Parts parts_;
  const std::unique_ptr<GradientBuffer> buffer_;
  const std::unique_ptr<ScriptDevice> device_;  // null: there is none
  std::atomic<bool> device_counts_{false};      // the buckets that the device has finished
  enum class SumsRead { kNone, kDue, kDone };
  SumsRead reads_ = SumsRead::kNone;  // of the device's sums, in this APPLY
  SystemClock system_clock_;
  PhaseClock own_phases_{system_clock_, WorkPhase::kOther};
  PhaseClock* phases_ = &own_phases_;

  Step applied_ = 0;
  bool ends_here_ = false;    // the script ended the run with the last applied step
  bool has_changed_ = false;  // since the script made its state
  std::vector<double> lrs_;   // of the next step of each turn
  EvalMark evaluated_;        // the last one that the state has seen
  std::optional<SlotInWork> work_;
  std::vector<float> private_region_;  // once needed
  const float* last_place_ = nullptr;  // of the device, of the last slot

  StepDriver driver_;
  std::optional<BatchSequence> ahead_;  // of the generation: slots that upcoming() has not given
};

}  // namespace lockstep
