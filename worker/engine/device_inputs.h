// Batches on their way to the device: two stages of pinned memory, and of the device's, in turn. So
// a batch is copied while the slot before is still computed.
//
// INVARIANTS
//  N1 A stage is filled again only when its last copy has left it, and copied over only when the
//     slot that computed with it is done.
//
// Thread-safety: the training thread only.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "data/index/dataset.h"
#include "data/transform/normalize.h"
#include "worker/cuda/device_module.h"

namespace lockstep {

class DeviceInputs {
 public:
  static constexpr uint32_t kMarks = 4;

  // Uses marks from `first_mark` on. `module` outlives it and has its tensors at `where`.
  DeviceInputs(DeviceModule& module, at::Device where, uint32_t first_mark)
      : module_(module), where_(where), first_mark_(first_mark) {}

  // What images go through. It is kept by the caller until kCompute has come here.
  Status set_transform(const data::Transform& transform);

  // Images as stored or tokens, as forward() takes them.
  Result<at::Tensor> load(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
                          uint64_t samples);

  // Of the samples loaded last, in the device's memory.
  const int64_t* labels() const { return labels_; }

 private:
  struct Stage {
    std::byte* host = nullptr;
    std::byte* device = nullptr;
    size_t bytes = 0;
  };

  Status reserve(Stage* stage, size_t bytes);
  Status send(size_t bytes);
  Result<at::Tensor> transformed(const data::SampleShape& shape, const std::byte* stored,
                                 uint64_t samples);
  uint32_t sent(uint32_t stage) const { return first_mark_ + stage; }
  uint32_t used(uint32_t stage) const { return first_mark_ + 2 + stage; }

  DeviceModule& module_;
  const at::Device where_;
  const uint32_t first_mark_;
  const data::Transform::Table* transform_ = nullptr;  // by channel, on the device
  std::array<Stage, 2> stages_;
  uint32_t turn_ = 0;  // the stage loaded last
  const int64_t* labels_ = nullptr;
};

}  // namespace lockstep
