// Where the model computes, and the ways between there and the memory that the loader fills, the
// Collective reads, and checkpoints are made of.
//
//   batch ─ send() ─▶ forward ─ start_loss() ─▶ backward ─▶ gradients() ─ transfer() ─▶ region
//                                                        └▶ sums() ─ DeviceCollective
//   sums ─ apply() ─▶ parameters and their state ◀─ to_device() ─ ─ to_host() ─▶ BoundaryState
//
// CpuDevice: all of it is one memory, and nothing is copied. Accelerator: memory of its own.
//
// INVARIANTS
//  D1 What is on the device changes only in apply() and to_device().
//  D2 The bits depend on neither the number of copies nor their timing.
//
// Errors: kInternal when the device fails; its memory is lost then, and the process with it.
// LibTorch's exceptions pass through.
//
// Thread-safety: the training thread only, but for transfer().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"
#include "data/read/sample_reader.h"
#include "worker/cuda/layer_kernels.h"
#include "worker/cuda/slot_values.h"
#include "worker/engine/core/device_sums.h"
#include "worker/engine/core/gradient_transfer.h"
#include "worker/engine/core/loss.h"
#include "worker/engine/core/step_sums.h"

namespace lockstep {

class SlotGraphs;

class Device {
 public:
  virtual ~Device() = default;

  virtual at::Device where() const = 0;  // of the model's tensors
  // Whichever thread drives the engine asks for it before it computes here.
  virtual Status make_current() { return Status::ok(); }
  // What of the device decides the bits, "key=value" lines.
  virtual std::vector<std::string> fingerprint() const = 0;

  // Flat memory that lasts as long as the device: the parameters, and the running statistics that
  // the slot in progress updates. By FlatLayout, the statistics from their section's start.
  virtual float* parameters() = 0;
  virtual float* slot_statistics() = 0;
  // Every slot starts from the boundary's statistics.
  virtual Status reset_statistics() = 0;

  // Of the device, for the model; none: LibTorch's operators.
  virtual LayerKernels kernels() { return {}; }

  // How images are to come to send().
  virtual data::ImageForm image_form() const { return data::ImageForm::kFloats; }

  // The next slot, or batch of an evaluation: its samples, labels and values. The memory may be the
  // caller's, who keeps it until loss().
  virtual Status send(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
                      uint64_t samples, const SlotValues& values) = 0;
  // Whether send() leaves the samples there that it sent before, where they are as many, and sends
  // the values only.
  virtual void keep_inputs(bool /*keeps*/) {}
  // Of what was sent, as forward() takes it: the samples, and the key where kernels() read it.
  virtual Result<at::Tensor> inputs() = 0;
  virtual const uint64_t* dropout_key_at() { return nullptr; }

  // The type in which start_loss() takes logits that were computed in this one.
  virtual at::ScalarType loss_type(at::ScalarType /*computed*/) const { return at::kFloat; }
  // Softmax cross-entropy of logits (..., classes) for the targets that the labels and values make
  // that were sent (row_target.h). `gradient` becomes that of (sum of losses) / step_labels *
  // loss_scale; null: none is wanted. It may lie in the place of the logits where `in_place` says
  // that nobody needs them any more. Does not wait for the device.
  virtual Status start_loss(const at::Tensor& logits, bool in_place, at::Tensor* gradient) = 0;
  virtual Result<SlotLoss> loss() = 0;

  // Computes what was sent by a graph where it can; null: it never can.
  virtual SlotGraphs* graphs() { return nullptr; }

  // Where backward writes the gradients that belong into `region` of the host.
  virtual float* gradients(float* region) = 0;
  // The slot's statistics are as they belong behind `gradients`, where backward wrote.
  virtual Status take_statistics(float* gradients) = 0;
  // How both come to the region from there; null: they are there.
  virtual GradientTransfer* transfer() { return nullptr; }
  // Where they can be summed without going to the host, with so many regions: backward writes there
  // instead. Null: the host's memory is the device's.
  virtual Result<DeviceSums*> sums(uint32_t /*regions*/) {
    return static_cast<DeviceSums*>(nullptr);
  }
  // The memory behind sums(), for a DeviceCollective; null as there.
  virtual Result<GradientBuffer*> regions(uint32_t /*regions*/) {
    return static_cast<GradientBuffer*>(nullptr);
  }
  // The gradients as the host can read them; `copy` is memory to put them.
  virtual Result<const float*> gradients_on_host(const float* gradients,
                                                 std::vector<float>* copy) = 0;

  // As BoundaryState::is_finite().
  virtual Result<bool> are_finite(const StepSums& sums) = 0;
  // As BoundaryState::apply(). After an error nothing is known of the state.
  virtual Result<bool> apply(const StepSums& sums, uint32_t non_empty_slots, double lr) = 0;

  // The BoundaryState becomes what the device has, and the other way round.
  virtual Status to_host() = 0;
  virtual Status to_device() = 0;
};

}  // namespace lockstep
