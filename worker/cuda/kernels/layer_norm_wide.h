// Layer normalisation of rows that are too wide for the registers of a team (layer_norm.h). A lane
// reads its elements again for every sum. Lane l takes elements l, l + kLanes, ...
//
// Thread-safety: one team per row; rows are independent.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/cuda/kernels/layer_norm.h"

namespace lockstep::cuda {

template <typename Team, typename T>
LOCKSTEP_TEAM_CODE void layer_norm_wide_row(const Team& team, const LayerNormForward<T>& op,
                                            uint64_t row, uint32_t n) {
  const T* x = op.x + row * n;
  const T* branch = op.branch == nullptr ? nullptr : op.branch + row * n;
  T* stream = op.stream + row * n;
  T* y = op.y + row * n;
  team.lane_loop(n, [&](uint32_t i) {
    stream[i] = branch == nullptr ? x[i] : from_float<T>(to_float(x[i]) + to_float(branch[i]));
  });
  // A lane reads only elements that it wrote itself, so it waits for nothing.
  const auto elements = static_cast<float>(n);
  const float mean = team.sum(n, [&](uint32_t i) { return to_float(stream[i]); }) / elements;
  const float variance = team.sum(n, [&](uint32_t i) {
    const float d = to_float(stream[i]) - mean;
    return d * d;
  }) / elements;
  const float rstd = 1.0f / std::sqrt(variance + op.eps);
  team.lane_loop(n, [&](uint32_t i) {
    y[i] = from_float<T>((to_float(stream[i]) - mean) * rstd * op.gain[i] + op.bias[i]);
  });
  team.once([&] {
    op.mean[row] = mean;
    op.rstd[row] = rstd;
  });
}

template <typename Team, typename T>
LOCKSTEP_TEAM_CODE void layer_norm_backward_wide_row(const Team& team,
                                                     const LayerNormBackward<T>& op, uint64_t row,
                                                     uint32_t n) {
  const T* dy = op.dy + row * n;
  const T* d_stream = op.d_stream == nullptr ? nullptr : op.d_stream + row * n;
  const T* stream = op.stream + row * n;
  T* dx = op.dx + row * n;
  const float mean = op.mean[row];
  const float rstd = op.rstd[row];
  const auto elements = static_cast<float>(n);
  const auto scaled = [&](uint32_t i) { return to_float(dy[i]) * op.gain[i]; };
  const auto normal = [&](uint32_t i) { return (to_float(stream[i]) - mean) * rstd; };
  const float mean_scaled = team.sum(n, scaled) / elements;
  const float mean_product =
      team.sum(n, [&](uint32_t i) { return scaled(i) * normal(i); }) / elements;
  team.lane_loop(n, [&](uint32_t i) {
    const float through = rstd * (scaled(i) - mean_scaled - normal(i) * mean_product);
    dx[i] = from_float<T>(d_stream == nullptr ? through : through + to_float(d_stream[i]));
  });
}

}  // namespace lockstep::cuda
