// The implementation of engine.h: its members, and the parts of a slot as functions.
//
// Thread-safety: as engine.h says.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/clock.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/job/loss_rules.h"
#include "comm/run/plan/step_plan.h"
#include "data/dataset/dataset.h"
#include "data/loader/label_count.h"
#include "data/loader/loader.h"
#include "data/loader/loader_tuning.h"
#include "data/loader/sample_reader.h"
#include "data/loader/sample_team.h"
#include "metrics/base/phase_clock.h"
#include "worker/engine/boundary_state.h"
#include "worker/engine/engine.h"
#include "worker/engine/eval_scores.h"
#include "worker/engine/flat_layout.h"
#include "worker/engine/loss_facts.h"
#include "worker/engine/slot_computer.h"
#include "worker/engine/step_driver.h"
#include "worker/model/weights/load_weights.h"
#include "worker/optim/schedule.h"
#include "worker/torch/device/device.h"
#include "worker/torch/device/slot_graphs.h"
#include "worker/torch/engine/slot_forward.h"
#include "worker/torch/engine/slot_gradients.h"
#include "worker/torch/model/model.h"

namespace lockstep {

class EngineImpl final : public Engine, private SlotComputer {
 public:
  EngineImpl(const wire::JobSpec& job, const data::Dataset& train, const data::Dataset* eval,
             std::unique_ptr<Model> model, Schedule schedule, std::vector<bool> frozen);
  ~EngineImpl() override;

  // The second half of creation: everything that can fail.
  Status init(uint32_t max_slots_per_rank, const BufferFactory& make_buffer, DeviceModule* module);

  GradientBuffer& gradient_buffer() override { return *buffer_; }
  Result<GradientBuffer*> device_buffer() override { return device_->regions(buffer_->regions()); }
  void drop_device_buffer() override { device_->drop_regions(); }
  std::vector<uint64_t> tensor_bounds() const override { return layout_.tensor_bounds(); }
  std::vector<std::string> fingerprint() const override;
  Result<std::vector<StateTensor>> state() override;
  Result<uint64_t> state_hash() override { return device_->state_hash(); }
  Status install_state(std::span<const StateTensor> state, Step applied_steps) override;
  Step applied_steps() const override { return state_->applied_steps(); }
  Status start_afresh() override;
  bool is_afresh() const override;
  std::vector<std::string> notes() const override;
  const WeightTable* initial_weights() const override {
    return initial_weights_ ? &*initial_weights_ : nullptr;
  }
  Result<uint64_t> largest_slot(MemoryMeter& meter, uint32_t workers_here) override;
  Status set_global_batch(uint64_t samples) override;
  Status begin_generation(const GenerationView& view, StepGate gate) override;
  void end_generation() override;
  Result<StepOutcome> step() override;
  Result<wire::EvalReport> evaluate() override;
  Status look(const data::Batch& batch, ForwardObserver& observer) override;
  void request_stop() override { driver_.request_stop(); }
  Progress progress() const override;

 private:
  // A slot, and the update from the sums; slot.cc.
  double lr(Step step) const override { return schedule_.lr(step, driver_.view().total_steps); }
  uint64_t step_labels(const StepPlan& plan, Step step, uint64_t samples) override;
  Result<std::optional<uint64_t>> compute(const SlotTask& task, SlotPort& port) override;
  Result<uint64_t> compute_again(const SlotTask& task) override;
  Result<bool> are_finite(const StepSums& sums) override { return device_->are_finite(sums); }
  Result<bool> apply(const StepSums& sums, uint32_t non_empty_slots, double lr) override;
  Status pass_over() override;

  // The places for the results of a slot.
  struct SlotMemory {
    float* region = nullptr;     // of the host: control, and gradients if they travel
    float* gradients = nullptr;  // where backward writes
  };
  SlotMemory memory_of(SlotPort& port);
  // The batch of the next slot that this rank computes.
  Result<const data::Batch*> next_batch();
  // Sends its samples ahead, if they are ready.
  Status send_next_ahead();
  SlotValues values_of(const data::Batch& batch, uint64_t step_labels) const;
  Status send_slot(const data::Batch& batch, const SlotValues& values);
  // Computes by a graph; the results lie at the graph's place. Null: nothing was done.
  Result<SlotGraphs*> launch_graph(uint64_t samples);
  Status backward_slot(const ModelOutput& output, float* gradients,
                       const std::function<void(uint32_t)>& on_ready);
  // Writes loss, right predictions, metrics and digest next to the slot's gradient.
  Status write_slot_results(const data::Batch& batch, const SlotValues& values,
                            const SlotMemory& memory);
  Status prune_if_due();

  // The search for the largest slot; trial_step.cc.
  Status trial_step(uint64_t samples);
  Status compute_trial(uint64_t samples);
  uint64_t reserved_bytes(uint32_t workers_here);

  // Evaluation; evaluate.cc.
  Result<wire::EvalReport> run_evaluation();
  // Scores a batch with the weights, and with their average if there is one.
  Status score_batch(const data::SampleReader& reader, data::SampleTeam& team, uint64_t begin,
                     uint64_t end, std::span<EvalScore> scores);
  Result<EvalScore> score_with(SlotForward& forward);

  bool is_by_sample() const {
    return lockstep::is_by_sample(loss_kind(job_.train()), model_->layout().own_loss.has_value()) ||
           (train_.shape().fields != nullptr &&
            train_.shape().fields->find(data::FieldRole::kWeight));
  }
  LossFacts loss_facts() const;
  std::span<const std::string> metrics() const { return driver_.loss().metrics; }
  // kUsage if the loss cannot do what the job asks for.
  Status check_loss() const;
  Status check_fields() const;
  // kBadData for targets of a batch that the loss cannot take.
  Status check_targets(const data::SampleShape& shape, const int64_t* labels,
                       uint64_t samples) const;

  void go_to(Step applied_steps);
  void drop_loader();
  // Checks that the model takes the samples of every slot and evaluation batch of the run.
  Status check_batches() const;
  Status check_slot(uint64_t step_samples, uint32_t slot, uint64_t size) const;
  Status check_eval_batches() const;
  uint64_t eval_batch() const { return std::max(1u, job_.train().eval_batch()); }
  void set_threads() const;
  Status use_this_thread();
  Result<std::unique_ptr<data::Loader>> make_loader(const RunShape& shape, const SlotRun& slots,
                                                    Step first, Step end, uint32_t prefetch_batches,
                                                    WorkInHand* in_hand,
                                                    data::LoaderTuning* tuning = nullptr) const;
  void note_tuning();

  const wire::JobSpec job_;  // except the global batch: use shape_
  const data::Dataset& train_;
  const data::Dataset* eval_;
  RunShape shape_;  // without a global batch until set_global_batch()
  const std::unique_ptr<Model> model_;
  const Schedule schedule_;
  const FlatLayout layout_;
  const at::ScalarType compute_type_;

  std::optional<WeightTable> initial_weights_;  // none: model.init was not read
  std::unique_ptr<BoundaryState> state_;
  std::unique_ptr<GradientBuffer> buffer_;
  std::unique_ptr<Device> device_;
  std::string results_;                 // numerics_effect(); empty: a GPU, with fast numerics
  bool state_is_new_ = true;            // the device has not seen the state yet
  std::vector<at::Tensor> parameters_;  // views of the device's memory
  std::vector<at::Tensor> buffers_;     // views of the device's memory: the slot's own copies
  std::unique_ptr<SlotGradients> gradients_;
  std::unique_ptr<SlotForward> forward_;  // after the gradients' sink, which it keeps
  std::vector<at::Tensor> averages_;      // parameters_, but the trained ones averaged (train.ema)
  std::unique_ptr<SlotForward> average_forward_;  // null without train.ema
  std::vector<std::byte> eval_inputs_;
  std::vector<int64_t> eval_labels_;

  SystemClock system_clock_;
  PhaseClock own_phases_{system_clock_, WorkPhase::kOther};
  PhaseClock* phases_ = &own_phases_;

  // Over all generations; null if data.tune is off.
  std::unique_ptr<data::LoaderTuning> tuning_;
  bool tuning_is_noted_ = false;

  // The state of the present generation.
  std::unique_ptr<data::Loader> loader_;
  const data::Batch* ahead_ = nullptr;  // taken from the loader, and not yet computed with
  StepDriver driver_;                   // ends before all that a generation uses
  data::LabelCount label_count_;

  std::atomic<bool> device_counts_{false};  // buckets, because devices are connected
};

}  // namespace lockstep
