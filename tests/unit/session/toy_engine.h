// An engine without a model, so that runners can be tested with their real data plane: its state is
// a row of floats that every step adds the slots' values to, each made of the state, the step and
// the slot. Sums round, and so a missing, doubled, stale or misplaced contribution of any slot in
// any step shows in the bits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/base/prng.h"
#include "comm/run/checkpoint/held_state.h"
#include "comm/run/checkpoint/state_hash.h"
#include "worker/engine/engine.h"

namespace lockstep::testing {

class ToyEngine final : public Engine {
 public:
  static constexpr BufferLayout kLayout = {64, 64, 80};
  enum Control : uint32_t { kStopVotes = 0, kSwitchVotes = 1 };

  ToyEngine(uint32_t slots, std::unique_ptr<GradientBuffer> buffer)
      : slots_(slots), buffer_(std::move(buffer)) {
    (void)start_afresh();
  }

  static uint32_t regions(uint32_t slots) { return regions_needed(slots, slots); }

  // Hooks on the training thread: before a step begins; with all sums there, before the gate.
  std::function<Status(Step)> on_step = [](Step) { return Status::ok(); };
  std::function<void(Step)> before_apply = [](Step) {};
  std::function<Status(Step)> on_evaluate = [](Step) { return Status::ok(); };
  std::function<void()> on_install = [] {};

  // For the thread that reads when the runner is done.
  const std::vector<float>& values() const { return values_; }
  const std::vector<uint64_t>& bucket_bounds() const { return bucket_bounds_; }
  const EvalMark& evaluated() const { return evaluated_; }

  GradientBuffer& gradient_buffer() override { return *buffer_; }
  std::vector<uint64_t> tensor_bounds() const override { return {0, 16, 32, kLayout.gradients}; }
  std::vector<std::string> fingerprint() const override { return {}; }
  Result<std::vector<StateTensor>> state() override { return tensors(); }
  Result<uint64_t> state_hash() override { return hash_of(tensors()); }
  Status install_state(std::span<const StateTensor> state, Step applied_steps) override {
    on_install();
    LOCKSTEP_RETURN_IF_ERROR(install_tensors(state, tensors()));
    applied_ = applied_steps;
    return Status::ok();
  }
  Step applied_steps() const override { return applied_; }
  Status start_afresh() override {
    values_.assign(kLayout.gradients, 1.0F);
    applied_ = 0;
    return Status::ok();
  }

  Result<uint64_t> largest_slot(MemoryMeter&, uint32_t) override { return uint64_t{1}; }
  Status set_global_batch(uint64_t) override { return Status::ok(); }

  Status begin_generation(const GenerationView& view, StepGate gate) override {
    view_ = view;
    bucket_bounds_ = view.bucket_bounds;
    evaluated_ = view.evaluated;
    gate_ = std::move(gate);
    voters_ = std::count_if(view.slot_runs.begin(), view.slot_runs.end(),
                            [](const SlotRun& run) { return run.begin < run.end; });
    return Status::ok();
  }
  void end_generation() override { view_ = {}; }

  Result<StepOutcome> step() override {
    LOCKSTEP_RETURN_IF_ERROR(on_step(applied_));
    const std::vector<bool> active = active_slots();
    if (std::none_of(active.begin(), active.end(), [](bool is) { return is; })) return pass_over();
    merge_ = make_step_merge(view_.slot_runs, slots_, active);
    Collective& collective = *view_.collective;
    const Tag tag{view_.generation, applied_, Phase::kTrain, 0, 0};
    LOCKSTEP_RETURN_IF_ERROR(collective.begin_step(tag, merge_));
    compute(merge_.ranks[collective.rank()]);
    LOCKSTEP_RETURN_IF_ERROR(collective.all_reduce(tag, {0, kLayout.elements}));
    before_apply(applied_);
    if (!gate_.try_enter()) return Status(Code::kAborted, "closed before the apply");
    const float* sums = collective.reduced();
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = values_[i] * 0.5F + sums[i];
    StepOutcome outcome;
    outcome.record.set_step(applied_++);
    gate_.leave();
    const float* control = sums + kLayout.statistics;
    outcome.all_want_stop = control[kStopVotes] == static_cast<float>(voters_);
    outcome.all_want_switch = control[kSwitchVotes] == static_cast<float>(voters_);
    return outcome;
  }

  Result<wire::EvalReport> evaluate() override {
    LOCKSTEP_RETURN_IF_ERROR(on_evaluate(applied_));
    LOCKSTEP_RETURN_IF_ERROR(
        view_.collective->barrier({view_.generation, applied_, Phase::kEval, 0, 0}));
    wire::EvalReport report;
    report.set_step(applied_);
    return report;
  }
  void request_stop() override { stop_ = true; }
  Progress progress() const override { return where; }
  Progress where;  // what progress() says

 private:
  std::vector<StateTensor> tensors() {
    return {{StateSection::kParameter,
             "values",
             DType::kF32,
             {static_cast<int64_t>(values_.size())},
             reinterpret_cast<std::byte*>(values_.data()),
             values_.size() * sizeof(float)}};
  }

  std::vector<bool> active_slots() const {
    std::vector<bool> active(slots_);
    for (uint32_t slot = 0; slot < slots_; ++slot)
      active[slot] = !view_.skips.contains(applied_, slot);
    return active;
  }
  Result<StepOutcome> pass_over() {
    if (!gate_.try_enter()) return Status(Code::kAborted, "closed before the apply");
    StepOutcome outcome;
    outcome.record.set_step(applied_++);
    gate_.leave();
    return outcome;
  }
  void fill(const SlotWork& work) {
    float* region = buffer_->partial(work.region);
    for (uint64_t i = 0; i < kLayout.gradients; ++i)
      region[i] =
          values_[i] *
          static_cast<float>(stream_value(stream_key({applied_, work.slot}), i) % 1'000'003) *
          1e-6F;
    std::fill(region + kLayout.gradients, region + kLayout.elements, 0.0F);
  }
  void compute(const MergeSchedule& schedule) {
    for (const SlotWork& work : schedule.work) {
      if (!work.empty) fill(work);
      for (const RegionMerge& m : work.merges)
        add_into(buffer_->partial(m.dst), buffer_->partial(m.src), kLayout.elements);
    }
    for (const FinalPartial& partial : schedule.partials) {
      float* control = buffer_->partial(partial.region) + kLayout.statistics;
      if (partial.empty) std::fill_n(control, kLayout.elements - kLayout.statistics, 0.0F);
    }
    if (schedule.partials.empty()) return;
    float* control = buffer_->partial(schedule.partials.front().region) + kLayout.statistics;
    control[kStopVotes] = stop_ ? 1.0F : 0.0F;
    control[kSwitchVotes] = view_.wants_switch() ? 1.0F : 0.0F;
  }

  const uint32_t slots_;
  const std::unique_ptr<GradientBuffer> buffer_;
  std::vector<uint64_t> bucket_bounds_;  // of the last generation
  EvalMark evaluated_;                   // as it was told
  std::vector<float> values_;
  Step applied_ = 0;
  GenerationView view_;
  StepGate gate_;
  StepMerge merge_;
  int64_t voters_ = 0;
  std::atomic<bool> stop_{false};
};

}  // namespace lockstep::testing
