// Where the sums of a step lie, with the layout of the gradient buffer.
//
// Thread-safety: a value.
#pragma once

namespace lockstep {

struct StepSums {
  const float* on_host = nullptr;    // control; gradients and statistics too, unless
  const float* on_device = nullptr;  // they are here, in the device's memory
};

}  // namespace lockstep
