// The inputs of a slot on their way to the device: its values (slot_values.h) and its batch, in one
// piece of memory and one copy. Slots alternate between two stages, each with pinned memory and
// memory of the device. So a batch is copied while the previous slot still computes. The first
// batch of a step is sent ahead, because its values are known only after the step before is
// applied. A slot that is a graph reads from a fixed place of its own, and the stage is copied
// there.
//
// INVARIANTS
//  N1 The host fills a stage again only after the stage's last copy to the device has ended. A copy
//     overwrites a stage on the device only after the slot that computed with it is done.
//
// Thread-safety: the training thread only.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "data/dataset/sample_shape.h"
#include "data/transform/normalize.h"
#include "worker/cuda/device_module.h"
#include "worker/cuda/kernels/slot_values.h"
#include "worker/torch/model/model.h"

namespace lockstep {

class DeviceInputs {
 public:
  // `module` outlives the object and has its tensors at `where`.
  DeviceInputs(DeviceModule& module, at::Device where) : module_(module), where_(where) {}

  // The transform of images to floats. The caller keeps `transform` until kCompute has reached this
  // point.
  Status set_transform(const data::Transform& transform);

  // Sends images as stored, or tokens, with their labels and the slot's values, to a stage.
  Status send(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
              uint64_t samples, const SlotValues& values);
  // As Device::send_ahead(). Does nothing if the stage has to grow first, or keeps its samples.
  Status send_ahead(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
                    uint64_t samples);
  // From here on a stage whose samples have as many bytes as the new ones keeps its samples. Only
  // the values are sent. Forgets what was sent ahead.
  void keep(bool keeps) {
    keeps_ = keeps;
    ahead_ = {};
  }
  // Copies all inputs from their stage to `place`, bytes() bytes in the device's memory.
  Status move_to(std::byte* place);
  size_t bytes() const { return batch_.bytes(); }

  // The parts of the last send(), where they lie now: inputs as forward() takes them, labels,
  // values.
  Result<at::Tensor> inputs();
  const int64_t* labels() const { return reinterpret_cast<const int64_t*>(at_ + batch_.labels_at); }
  at::Tensor label_tensor() const;
  FieldTensors field_tensors() const;
  const SlotValues* values() const { return reinterpret_cast<const SlotValues*>(at_); }
  // One of these values, as a tensor without dimensions.
  at::Tensor view(const float* value) const;

 private:
  struct Stage {
    std::byte* host = nullptr;
    std::byte* device = nullptr;
    size_t bytes = 0;
    size_t sent = 0;  // bytes that lie there now
  };

  // A batch of the caller, and where it lies in a stage.
  struct BatchPlace {
    const void* inputs = nullptr;
    const int64_t* labels = nullptr;
    size_t input_bytes = 0;
    size_t labels_at = 0;
    size_t label_bytes = 0;

    size_t bytes() const { return labels_at + label_bytes; }
    bool operator==(const BatchPlace&) const = default;
  };

  static BatchPlace place_of(const data::SampleShape& shape, const void* inputs,
                             const int64_t* labels, uint64_t samples);
  static void fill(Stage* stage, const BatchPlace& batch);
  // Frees memory that the stage has outgrown. After an error the stage is empty.
  Status reserve(Stage* stage, size_t bytes);
  Status copy_stage(size_t bytes);
  Result<at::Tensor> transformed(const std::byte* stored);

  DeviceModule& module_;
  const at::Device where_;
  const data::Transform::Table* transform_ = nullptr;  // by channel, in the device's memory
  std::array<Stage, 2> stages_;
  uint32_t turn_ = 0;  // the stage of the last send()
  bool keeps_ = false;
  // The state after the last send().
  data::SampleShape shape_;
  uint64_t samples_ = 0;
  BatchPlace batch_;
  const std::byte* at_ = nullptr;
  BatchPlace ahead_;  // in the stage whose turn is next; without bytes: nothing is there
};

}  // namespace lockstep
