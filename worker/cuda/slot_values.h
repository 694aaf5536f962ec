// What differs from slot to slot besides its samples, where kernels read it: in the memory of the
// device, sent there with the samples. As arguments of kernels these values would be those of the
// slot with which a CUDA graph was recorded.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>

namespace lockstep {

struct SlotValues {
  uint64_t dropout_key = 0;  // of the slot's random stream
  uint64_t step_labels = 1;  // labels of the whole step, by which the gradient is divided
  float loss_scale = 1;      // by which it is multiplied
  float label_share = 1;     // of a sample's own label (row_target.h)
  float pixel_share = 1;     // of its own pixels (images.h)
  float label_smoothing = 0;
};

}  // namespace lockstep
