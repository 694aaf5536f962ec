// The values, besides the samples, that differ from slot to slot. Kernels read them from the
// device's memory, where they arrive with the samples. As arguments of kernels, the values would
// stay those of the slot with which a CUDA graph was recorded.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>

namespace lockstep {

struct SlotValues {
  uint64_t dropout_key = 0;  // key of the slot's random stream
  uint64_t step_labels = 1;  // labels of the whole step; the gradient is divided by them
  float loss_scale = 1;      // the gradient is multiplied by it
  float label_share = 1;     // share of a sample's own label (row_target.h)
  float pixel_share = 1;     // share of a sample's own pixels (images.h)
  float label_smoothing = 0;
};

}  // namespace lockstep
