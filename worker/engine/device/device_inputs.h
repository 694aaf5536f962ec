// What a slot is computed from, on its way to the device: its values (slot_values.h) and its batch,
// in one piece of memory and one copy. Two stages of pinned memory, and of the device's, are taken
// in turn; so a batch is copied while the slot before is still computed. A slot that is a graph
// reads from a place of its own, always the same, to which the stage is copied.
//
// INVARIANTS
//  N1 A stage is filled again only when its last copy has left it, and copied over only when the
//     slot that computed with it is done.
//
// Thread-safety: the training thread only.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "data/dataset/sample_shape.h"
#include "data/transform/normalize.h"
#include "worker/cuda/device_module.h"
#include "worker/cuda/slot_values.h"

namespace lockstep {

class DeviceInputs {
 public:
  // `module` outlives it and has its tensors at `where`.
  DeviceInputs(DeviceModule& module, at::Device where) : module_(module), where_(where) {}

  // What images go through. It is kept by the caller until kCompute has come here.
  Status set_transform(const data::Transform& transform);

  // Images as stored or tokens, their labels and the slot's values, to a stage.
  Status send(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
              uint64_t samples, const SlotValues& values);
  // From here on a stage that has samples of as many bytes keeps them, and only the values are
  // sent.
  void keep(bool keeps) { keeps_ = keeps; }
  // All of that from its stage to `place`, of bytes(), in the device's memory.
  Status move_to(std::byte* place);
  size_t bytes() const { return labels_at_ + label_bytes_; }

  // What was sent last, where it lies now: inputs as forward() takes them, labels, values.
  Result<at::Tensor> inputs();
  const int64_t* labels() const { return reinterpret_cast<const int64_t*>(at_ + labels_at_); }
  const SlotValues* values() const { return reinterpret_cast<const SlotValues*>(at_); }
  // A value of them, without dimensions.
  at::Tensor view(const float* value) const;

 private:
  struct Stage {
    std::byte* host = nullptr;
    std::byte* device = nullptr;
    size_t bytes = 0;
    size_t sent = 0;  // what lies there now
  };

  Status reserve(Stage* stage, size_t bytes);
  Status copy_stage(size_t bytes);
  Result<at::Tensor> transformed(const std::byte* stored);

  DeviceModule& module_;
  const at::Device where_;
  const data::Transform::Table* transform_ = nullptr;  // by channel, on the device
  std::array<Stage, 2> stages_;
  uint32_t turn_ = 0;  // the stage sent last
  bool keeps_ = false;
  // Of what was sent last.
  data::SampleShape shape_;
  uint64_t samples_ = 0;
  size_t labels_at_ = 0;
  size_t label_bytes_ = 0;
  const std::byte* at_ = nullptr;
};

}  // namespace lockstep
