// Residual + layer normalisation of rows of `n` elements, forward and backward (Ba, Kiros, Hinton,
// Layer Normalization, 2016). Activations are T (float or Bf16), weights and sums float.
//
// The kernel normalises the stored sum, rounded to T, so backward sees the same values as forward.
//
// The lanes of a team hold their row in registers (groups.h), up to `Each` groups a lane. So every
// element is read once. REQUIRES: group_count<T>(n) <= Each * Team::kLanes. Wider rows:
// layer_norm_wide.h, whose sums have another order.
//
// YARDSTICK for 32,768 rows of 768 Bf16, at 3.35 TB/s: forward reads two and writes two times 50
// MB, 60 us; backward reads three and writes one, and 13 MB of column sums go through the cache, 64
// us. 25 normalisations of GPT-2 (124M): 3.1 ms a step.
//
// Thread-safety: one team per row; rows are independent.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/cuda/kernels/groups.h"
#include "worker/cuda/kernels/team.h"

namespace lockstep::cuda {

// stream = x + branch; y = (stream - mean) / sqrt(variance + eps) * gain + bias. A null `branch`
// counts as zero, and `stream` may then be x itself.
template <typename T>
struct LayerNormForward {
  const T* x = nullptr;       // (rows, n)
  const T* branch = nullptr;  // (rows, n)
  const float* gain = nullptr;
  const float* bias = nullptr;
  float eps = 1e-5f;
  T* stream = nullptr;    // (rows, n)
  T* y = nullptr;         // (rows, n)
  float* mean = nullptr;  // (rows)
  float* rstd = nullptr;  // (rows): 1 / standard deviation
};

// The group of a + b.
template <typename T>
LOCKSTEP_HOST_DEVICE Group<T> sum_of_groups(const Group<T>& a, const Group<T>& b) {
  float sums[kGroup<T>];
  for (uint32_t j = 0; j < kGroup<T>; ++j) sums[j] = element(a, j) + element(b, j);
  return group_of<T>(sums);
}

template <uint32_t Each, bool Aligned, typename Team, typename T>
LOCKSTEP_TEAM_CODE void layer_norm_row(const Team& team, const LayerNormForward<T>& op,
                                       uint64_t row, uint32_t n) {
  using Held = typename Team::template Held<Group<T>, Each>;
  const uint32_t groups = group_count<T>(n);
  const auto load = [&](const T* rows) {
    Held held;
    team.template held_loop<Each>(groups, [&](uint32_t k, uint32_t g) {
      held.of[k] = load_group<Aligned>(rows + row * n, g, n);
    });
    return held;
  };
  Held stream = load(op.x);
  if (op.branch != nullptr) {
    const Held branch = load(op.branch);
    team.template held_loop<Each>(groups, [&](uint32_t k, uint32_t) {
      stream.of[k] = sum_of_groups(stream.of[k], branch.of[k]);
    });
  }
  if (op.branch != nullptr || op.stream != op.x) {
    team.template held_loop<Each>(groups, [&](uint32_t k, uint32_t g) {
      store_group<Aligned>(op.stream + row * n, g, n, stream.of[k]);
    });
  }
  const auto mean_of = [&](const auto& term) {
    return team.template held_fold<Each>(
               groups, 0.0f,
               [&](float& sum, uint32_t k, uint32_t g) {
                 each_element<T, Aligned>(
                     g, n, [&](uint32_t j, uint32_t) { sum += term(element(stream.of[k], j)); });
               },
               [](float a, float b) { return a + b; }) /
           static_cast<float>(n);
  };
  const float mean = mean_of([](float x) { return x; });
  const float variance = mean_of([&](float x) { return (x - mean) * (x - mean); });
  const float rstd = 1.0f / std::sqrt(variance + op.eps);
  team.template held_loop<Each>(groups, [&](uint32_t k, uint32_t g) {
    const GroupFloats<T> gain = load_floats<T, Aligned>(op.gain, g, n);
    const GroupFloats<T> bias = load_floats<T, Aligned>(op.bias, g, n);
    float y[kGroup<T>];
    for (uint32_t j = 0; j < kGroup<T>; ++j)
      y[j] = (element(stream.of[k], j) - mean) * rstd * gain.of[j] + bias.of[j];
    store_group<Aligned>(op.y + row * n, g, n, group_of<T>(y));
  });
  team.once([&] {
    op.mean[row] = mean;
    op.rstd[row] = rstd;
  });
}

// dx = the gradient of stream: through the normalisation, plus `d_stream`, which reaches stream
// past the normalisation (null: nothing). dx is the gradient of x and of the branch. dx may be dy
// or d_stream.
template <typename T>
struct LayerNormBackward {
  const T* dy = nullptr;        // (rows, n)
  const T* d_stream = nullptr;  // (rows, n)
  const T* stream = nullptr;    // (rows, n)
  const float* gain = nullptr;
  const float* mean = nullptr;  // (rows)
  const float* rstd = nullptr;  // (rows)
  T* dx = nullptr;              // (rows, n)
};

// Two means over a row that backward needs.
struct NormMeans {
  float scaled = 0;   // of dy * gain
  float product = 0;  // of dy * gain * the normalised value
};

// Calls each_term(k, j, dy, normal) for every element of the row, the j-th of the k-th group that a
// lane holds. The gradients of gain and bias are summed from these terms (column_sums.h).
template <uint32_t Each, bool Aligned, typename Team, typename T, typename Term>
LOCKSTEP_TEAM_CODE void layer_norm_backward_row(const Team& team, const LayerNormBackward<T>& op,
                                                uint64_t row, uint32_t n, const Term& each_term) {
  using Held = typename Team::template Held<Group<T>, Each>;
  const uint32_t groups = group_count<T>(n);
  const auto load = [&](const T* rows) {
    Held held;
    team.template held_loop<Each>(groups, [&](uint32_t k, uint32_t g) {
      held.of[k] = load_group<Aligned>(rows + row * n, g, n);
    });
    return held;
  };
  const Held dy = load(op.dy);
  const Held stream = load(op.stream);
  Held d_stream;
  if (op.d_stream != nullptr) d_stream = load(op.d_stream);
  const float mean = op.mean[row];
  const float rstd = op.rstd[row];
  const auto normal = [&](uint32_t k, uint32_t j) {
    return (element(stream.of[k], j) - mean) * rstd;
  };
  const auto elements = static_cast<float>(n);
  const NormMeans sums = team.template held_fold<Each>(
      groups, NormMeans{},
      [&](NormMeans& lane, uint32_t k, uint32_t g) {
        const GroupFloats<T> gain = load_floats<T, Aligned>(op.gain, g, n);
        each_element<T, Aligned>(g, n, [&](uint32_t j, uint32_t) {
          const float scaled = element(dy.of[k], j) * gain.of[j];
          lane.scaled += scaled;
          lane.product += scaled * normal(k, j);
          each_term(k, j, element(dy.of[k], j), normal(k, j));
        });
      },
      [](const NormMeans& a, const NormMeans& b) {
        return NormMeans{a.scaled + b.scaled, a.product + b.product};
      });
  const float mean_scaled = sums.scaled / elements;
  const float mean_product = sums.product / elements;
  team.template held_loop<Each>(groups, [&](uint32_t k, uint32_t g) {
    const GroupFloats<T> gain = load_floats<T, Aligned>(op.gain, g, n);
    float dx[kGroup<T>];
    for (uint32_t j = 0; j < kGroup<T>; ++j) {
      const float scaled = element(dy.of[k], j) * gain.of[j];
      const float through = rstd * (scaled - mean_scaled - normal(k, j) * mean_product);
      dx[j] = op.d_stream == nullptr ? through : through + element(d_stream.of[k], j);
    }
    store_group<Aligned>(op.dx + row * n, g, n, group_of<T>(dx));
  });
}

}  // namespace lockstep::cuda
