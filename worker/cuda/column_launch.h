// Launches of column sums that other launches need (column_sums.h). Internal to the layers.
#pragma once

#include "worker/cuda/layer_launch.h"

namespace lockstep::cuda {

// The gradients of a layer normalisation's gain and bias.
template <typename T>
Status launch_gain_gradient(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n,
                            const NormGradients& to, cudaStream_t stream);

}  // namespace lockstep::cuda
