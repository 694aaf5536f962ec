// Where the model computes, and how data move between the device and the host's memory. The loader
// fills the host's memory, the Collective reads it, and checkpoints come from it.
//
//   batch ─ send() ─▶ forward ─ start_loss() ─▶ backward ─▶ gradients() ─ transfer() ─▶ region
//                                                        └▶ sums() ─ DeviceCollective
//   sums ─ apply() ─▶ parameters and their state ◀─ to_device() ─ ─ to_host() ─▶ BoundaryState
//
// CpuDevice: all data lie in one memory, and nothing is copied. Accelerator: memory of its own.
//
// INVARIANTS
//  D1 The state on the device changes only in apply() and to_device().
//  D2 The bits depend neither on the number of copies nor on their timing.
//
// Errors: kInternal if the device fails. Its memory is then lost, and the process must end.
// LibTorch's exceptions pass through.
//
// Thread-safety: the training thread only, except transfer().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"
#include "data/loader/sample_reader.h"
#include "worker/cuda/kernels/layer_kernels.h"
#include "worker/cuda/kernels/slot_values.h"
#include "worker/engine/device_sums.h"
#include "worker/engine/gradient_transfer.h"
#include "worker/engine/loss.h"
#include "worker/engine/step_sums.h"

namespace lockstep {

class SlotGraphs;
class VarlenAttention;
struct FieldTensors;
struct ModelOutput;

class Device {
 public:
  virtual ~Device() = default;

  virtual at::Device where() const = 0;  // of the model's tensors
  // Makes the device the current one of the calling thread. A thread that drives the engine calls
  // this before it computes.
  virtual Status make_current() { return Status::ok(); }
  // The properties of the device that decide the bits, as "key=value" lines.
  virtual std::vector<std::string> fingerprint() const = 0;

  // Flat memory that lasts as long as the device: the parameters, and the running statistics that
  // the slot in progress updates. Layout: FlatLayout; statistics begin at the start of their
  // section.
  virtual float* parameters() = 0;
  virtual float* average() = 0;  // of the trained parameters (train.ema); null without it
  virtual float* slot_statistics() = 0;
  // Copies the boundary state's statistics to slot_statistics(). Every slot starts from them.
  virtual Status reset_statistics() = 0;

  // The device's kernels for the model. Empty: the model uses LibTorch's operators.
  virtual LayerKernels kernels() { return {}; }

  // The device's attention over packed documents (model/document_attention.h), or null; and
  // most_documents() of the last send(), for it.
  virtual const VarlenAttention* varlen_attention() { return nullptr; }
  virtual uint32_t most_documents() const { return 0; }

  // The form in which send() takes images.
  virtual data::ImageForm image_form() const { return data::ImageForm::kFloats; }

  // Sends the next slot, or the next batch of an evaluation: samples, labels with the records that
  // follow them (data/dataset/fields.h), and values. The device may use the caller's memory
  // directly, so the caller keeps the memory until loss().
  virtual Status send(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
                      uint64_t samples, const SlotValues& values) = 0;
  // Sends the samples of the next send() ahead, so that they travel while the device still
  // computes. The values of that slot need not be known yet. REQUIRES: all computation with the
  // last send() is enqueued. A send() of other memory sends everything itself.
  virtual Status send_ahead(const data::SampleShape& /*shape*/, const void* /*inputs*/,
                            const int64_t* /*labels*/, uint64_t /*samples*/) {
    return Status::ok();
  }
  virtual bool sends_ahead() const { return false; }  // else send_ahead() does nothing
  // With `keeps`, send() leaves the samples of an earlier send() on the device if their number is
  // the same. It then sends the values only. Also forgets samples that were sent ahead.
  virtual void keep_inputs(bool /*keeps*/) {}
  // The samples that were sent, as forward() takes them. Also puts the key where kernels() read it.
  virtual Result<at::Tensor> inputs() = 0;
  // The labels and fields of the same samples: label_input(), field_inputs().
  virtual at::Tensor labels() = 0;
  virtual FieldTensors fields() = 0;
  virtual const uint64_t* dropout_key_at() { return nullptr; }

  // The type in which start_loss() takes logits that were computed in type `computed`.
  virtual at::ScalarType loss_type(at::ScalarType /*computed*/) const { return at::kFloat; }
  // Starts the softmax cross-entropy of logits (..., classes). The labels and values of send() make
  // the targets (row_target.h). `gradient` receives the gradient of (sum of losses) / step_labels *
  // loss_scale; null: no gradient. With `in_place` the caller needs the logits no more, and the
  // gradient may overwrite them. Does not wait for the device.
  virtual Status start_loss(const at::Tensor& logits, bool in_place, at::Tensor* gradient) = 0;
  // Starts to add up the losses of samples, with their weights and metrics. `gradient` as in
  // start_loss(), with respect to the losses: loss_scale / step_labels for each.
  virtual Status start_losses(const ModelOutput& output, at::Tensor* gradient) = 0;
  // The result of the last start. Members beyond SlotLoss are zero, unless that was start_losses().
  virtual Result<SlotScore> loss() = 0;

  // Computes slots by a graph where possible; null: never.
  virtual SlotGraphs* graphs() { return nullptr; }

  // Where backward writes the gradients for `region` of the host.
  virtual float* gradients(float* region) = 0;
  // Puts the slot's statistics after `gradients`, where backward wrote.
  virtual Status take_statistics(float* gradients) = 0;
  // Brings gradients and statistics to the host's region; null: backward writes there.
  virtual GradientTransfer* transfer() { return nullptr; }
  // Sums gradients without the host, in `regions` regions; backward writes into these regions.
  // Null: the host's memory is the device's.
  virtual Result<DeviceSums*> sums(uint32_t /*regions*/) {
    return static_cast<DeviceSums*>(nullptr);
  }
  // The number of buckets of the step in flight whose sums() the device has reached. Any thread.
  virtual uint32_t finished_buckets() const { return 0; }
  // The memory that sums() uses, for a DeviceCollective. Null: the host's memory is the device's.
  virtual Result<GradientBuffer*> regions(uint32_t /*regions*/) {
    return static_cast<GradientBuffer*>(nullptr);
  }
  // Frees the memory that regions() took, except what a step without it needs.
  virtual void drop_regions() {}
  // The hashes that members compare: hash_gradients() of the gradients that backward wrote to
  // `gradients`, and hash_of() the present boundary state (comm/run/checkpoint/state_hash.h).
  virtual Result<uint64_t> gradient_hash(const float* gradients) = 0;
  virtual Result<uint64_t> state_hash() = 0;

  // As BoundaryState::is_finite().
  virtual Result<bool> are_finite(const StepSums& sums) = 0;
  // As BoundaryState::apply(). After an error the state is unknown.
  virtual Result<bool> apply(const StepSums& sums, uint32_t non_empty_slots, double lr) = 0;

  // to_host() copies the device's state to the BoundaryState, to_device() the other way round.
  virtual Status to_host() = 0;
  virtual Status to_device() = 0;
};

}  // namespace lockstep
