// The CPU as the Device. It computes on the BoundaryState itself, and writes gradients into the
// regions that the Collective reads.
//
// Thread-safety: as Device.
#pragma once

#include <vector>

#include "worker/engine/boundary_state.h"
#include "worker/engine/flat_layout.h"
#include "worker/engine/self_check.h"
#include "worker/torch/device/device.h"

namespace lockstep {

class CpuDevice final : public Device {
 public:
  // Both outlive the device.
  CpuDevice(const FlatLayout& layout, BoundaryState& state);

  at::Device where() const override { return at::kCPU; }
  std::vector<std::string> fingerprint() const override { return {"device=cpu"}; }
  float* parameters() override { return state_.memory().parameters; }
  float* average() override { return state_.memory().average; }
  float* slot_statistics() override { return slot_statistics_.mutable_data_ptr<float>(); }
  Status reset_statistics() override;
  Status send(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
              uint64_t samples, const SlotValues& values) override;
  Result<at::Tensor> inputs() override { return inputs_; }
  at::Tensor labels() override;
  FieldTensors fields() override;
  Status start_loss(const at::Tensor& logits, bool in_place, at::Tensor* gradient) override;
  Status start_losses(const ModelOutput& output, at::Tensor* gradient) override;
  Result<SlotScore> loss() override { return loss_; }
  float* gradients(float* region) override { return region; }
  Status take_statistics(float* gradients) override;
  Result<uint64_t> gradient_hash(const float* gradients) override {
    return hash_gradients(layout_, gradients);
  }
  Result<uint64_t> state_hash() override { return hash_of(state_.tensors()); }
  Result<bool> are_finite(const StepSums& sums) override { return state_.is_finite(sums.on_host); }
  Result<bool> apply(const StepSums& sums, uint32_t non_empty_slots, double lr) override {
    return state_.apply(sums.on_host, non_empty_slots, lr);
  }
  Status to_host() override { return Status::ok(); }
  Status to_device() override { return Status::ok(); }

 private:
  const FlatLayout& layout_;
  BoundaryState& state_;
  const at::Tensor slot_statistics_;
  at::Tensor inputs_;  // of the last send()
  const int64_t* labels_ = nullptr;
  data::SampleShape shape_;
  uint64_t samples_ = 0;
  SlotValues values_;
  std::vector<SlotLoss> row_losses_;
  SlotScore loss_;
};

}  // namespace lockstep
