// The values that differ from slot to slot, besides the samples. Kernels read them from the
// device's memory, where they arrive with the samples. A CUDA graph would freeze arguments of
// kernels at the values of the slot that it recorded.
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
