// A Device with memory of its own, reached through a DeviceModule. LibTorch's operators run on the
// device by themselves. This class moves the data and ends the step.
//
//   kInputs     values and batch ─▶ stage of the device (device_inputs.h)
//   kCompute    forward, loss, backward ─▶ region 0 here, one slot's gradients and statistics
//   kGradients  region 0 ─▶ region of the host, bucket by bucket (device_gradients.h)
//   kCompute    sums ─▶ region 0, totals, verdict, update, statistics
//
// If a rank is alone, or the devices are connected (DeviceCollective, on a lane of its own),
// gradients stay in regions on the device (DeviceSums):
//
//   kCompute    forward, loss, backward ─▶ region
//   kGradients  merges
//   kCompute    totals, verdict, update, statistics
//
// Forward to backward may be a CUDA graph (slot_graphs.h). A graph has a place of its own instead
// of region 0.
//
// The BoundaryState that the device was made from is the host's copy of the state. The device
// updates the copy when a caller asks for it, and uploads it when a caller has written to it.
//
// INVARIANTS
//  A1 If gradients go over the host, region 0 holds the step's sums in apply().
//  A2 The host's gate decides whether a step is applied, because the host has all sums or has seen
//     that they are there. Before each apply the device's gate word is set to the step.
//  A3 With exact numerics no library goes on in a slot with less memory than it asked for: cuDNN's
//     next algorithm would have other bits. The slot fails instead.
//
// Thread-safety: as Device.
#pragma once

#include <memory>

#include "worker/cuda/device_module.h"
#include "worker/device/device_gradients.h"
#include "worker/device/device_reader.h"
#include "worker/engine/boundary_state.h"
#include "worker/engine/flat_layout.h"
#include "worker/optim/optimizers.h"
#include "worker/torch/device/device.h"
#include "worker/torch/device/device_inputs.h"
#include "worker/torch/device/device_loss.h"
#include "worker/torch/device/slot_graphs.h"

namespace lockstep {

class Accelerator final : public Device {
 public:
  // All arguments outlive the device. The state is on the device after the first to_device().
  static Result<std::unique_ptr<Accelerator>> create(DeviceModule& module, const FlatLayout& layout,
                                                     BoundaryState& state, const wire::JobSpec& job,
                                                     const data::Dataset& train);
  ~Accelerator() override;

  at::Device where() const override { return where_; }
  Status make_current() override;
  std::vector<std::string> fingerprint() const override;
  float* parameters() override { return parameters_; }
  float* average() override { return average_; }
  float* slot_statistics() override { return slot_statistics_; }
  Status reset_statistics() override;
  LayerKernels kernels() override { return module_.layers(); }
  const VarlenAttention* varlen_attention() override;
  uint32_t most_documents() const override { return most_documents_; }
  data::ImageForm image_form() const override { return data::ImageForm::kStored; }
  Status send(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
              uint64_t samples, const SlotValues& values) override;
  Status send_ahead(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
                    uint64_t samples) override {
    return inputs_.send_ahead(shape, inputs, labels, samples);
  }
  bool sends_ahead() const override { return true; }
  void keep_inputs(bool keeps) override { inputs_.keep(keeps); }
  Result<at::Tensor> inputs() override { return inputs_.inputs(); }
  at::Tensor labels() override { return inputs_.label_tensor(); }
  FieldTensors fields() override { return inputs_.field_tensors(); }
  const uint64_t* dropout_key_at() override { return &inputs_.values()->dropout_key; }
  at::ScalarType loss_type(at::ScalarType computed) const override {
    return computed == at::kBFloat16 ? computed : at::kFloat;
  }
  Status start_loss(const at::Tensor& logits, bool in_place, at::Tensor* gradient) override {
    return loss_.start(logits, in_place, inputs_, gradient);
  }
  Status start_losses(const ModelOutput& output, at::Tensor* gradient) override;
  Result<SlotScore> loss() override { return loss_.wait(); }
  SlotGraphs* graphs() override { return &graphs_; }
  float* gradients(float*) override { return gradients_.partial(0); }
  Status take_statistics(float* gradients) override;
  GradientTransfer* transfer() override { return &gradients_; }
  Result<DeviceSums*> sums(uint32_t regions) override;
  uint32_t finished_buckets() const override { return gradients_.counter().finished(); }
  Result<GradientBuffer*> regions(uint32_t regions) override;
  void drop_regions() override { gradients_.regions().drop(); }
  Result<uint64_t> gradient_hash(const float* gradients) override;
  Result<uint64_t> state_hash() override;
  Result<bool> are_finite(const StepSums& sums) override;
  Result<bool> apply(const StepSums& sums, uint32_t non_empty_slots, double lr) override;
  Status to_host() override;
  Status to_device() override;

 private:
  Accelerator(DeviceModule& module, const FlatLayout& layout, BoundaryState& state,
              const wire::JobSpec& job);
  Status init(const wire::JobSpec& job, const data::Dataset& train);
  Status copy_state(bool to_device);
  // The device's memory for the BoundaryState's at `on_host`; null: the host's is the newest.
  const void* place_of(const std::byte* on_host) const;
  Status finish(DeviceLane lane);
  int64_t refused_allocations() const;
  // Muon's matrices, once the host has read the verdict. Works on apply_host_.
  Status update_matrices_if_applied(OptimizerStep step, const UpdateBuffers& buffers);
  // Brings the step's sums to the device, and the first elements of control to control_.
  Result<const float*> bring_sums(const StepSums& sums);

  DeviceModule& module_;
  const FlatLayout& layout_;
  BoundaryState& state_;
  const at::Device where_;
  const wire::OptimizerSpec optimizer_spec_;
  const OptimizerRule rule_;
  const LossScaleRule loss_scale_rule_;
  const bool names_comm_library_;  // in the fingerprint
  const bool sums_in_windows_;     // if NCCL sums
  const bool is_exact_;
  int64_t refused_before_ = 0;  // refused_allocations() when the slot began
  DeviceInputs inputs_;
  SlotValues values_;            // of the last send()
  uint32_t most_documents_ = 0;  // of the last send(); 0 where nothing asks for it
  DeviceLoss loss_;
  DeviceGradients gradients_;
  DeviceReader reader_;
  SlotGraphs graphs_;  // last: it uses the others

  // In the device's memory.
  float* parameters_ = nullptr;
  float* statistics_ = nullptr;
  std::vector<float*> optimizer_;  // layout of BoundaryMemory
  float* average_ = nullptr;       // layout of BoundaryMemory; null without train.ema
  float* slot_statistics_ = nullptr;
  float* control_ = nullptr;  // kCutElements
  const cuda::UpdateChunk* chunks_ = nullptr;
  const cuda::TotalsBlock* blocks_ = nullptr;
  cuda::BlockTotals* totals_ = nullptr;
  cuda::ApplyState* apply_ = nullptr;
  uint32_t chunk_count_ = 0;
  uint32_t block_count_ = 0;

  cuda::ApplyState* apply_host_ = nullptr;  // pinned
  bool host_is_behind_ = false;             // the device has applied a step since the last copy
};

}  // namespace lockstep
