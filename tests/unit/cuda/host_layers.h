// LayerKernels in loops on the CPU, with the functions that the kernels are made of.
#pragma once

#include "worker/cuda/kernels/column_sums.h"
#include "worker/cuda/kernels/fp8_host.h"
#include "worker/cuda/kernels/gelu_columns.h"
#include "worker/cuda/kernels/layer_kernels.h"
#include "worker/cuda/kernels/layer_norm_wide.h"

namespace lockstep::testing {

template <typename T>
class HostLayers : public LayerKernelsOf<T> {
 public:
  uint64_t calls = 0;
  uint64_t losses = 0;           // of them
  uint64_t losses_in_place = 0;  // of these

  Status norm(const cuda::LayerNormForward<T>& work, uint32_t rows, uint32_t n) override {
    ++calls;
    for (uint32_t row = 0; row < rows; ++row) {
      if (n <= kWidestHeld)
        cuda::layer_norm_row<kHeldGroups, false>(Warp{}, work, row, n);
      else
        cuda::layer_norm_wide_row(Warp{}, work, row, n);
    }
    return Status::ok();
  }

  Status norm_backward(const cuda::LayerNormBackward<T>& work, uint32_t rows, uint32_t n,
                       const NormGradients& to) override {
    ++calls;
    walk(cuda::NormColumns<T>{work}, rows, n, to.partials);
    sum_chunks(to.partials, rows, n, to.gain);
    sum_chunks(to.partials + cuda::column_chunks(rows) * n, rows, n, to.bias);
    for (uint32_t row = 0; row < rows; ++row) {
      if (n <= kWidestHeld)
        cuda::layer_norm_backward_row<kHeldGroups, false>(Warp{}, work, row, n,
                                                          [](uint32_t, uint32_t, float, float) {});
      else
        cuda::layer_norm_backward_wide_row(Warp{}, work, row, n);
    }
    return Status::ok();
  }

  Status bias_gelu(const BiasGelu<T>& work, uint32_t rows, uint32_t n) override {
    ++calls;
    walk(cuda::GeluColumns<T>{work}, rows, n, nullptr);
    return Status::ok();
  }

  Status bias_gelu_backward(const BiasGeluBackward<T>& work, uint32_t rows, uint32_t n,
                            const BiasGradient& to) override {
    ++calls;
    walk(cuda::GeluBackwardColumns<T>{work}, rows, n, to.partials);
    sum_chunks(to.partials, rows, n, to.bias);
    return Status::ok();
  }

  Status cross_entropy(const CrossEntropy<T>& work, uint32_t rows) override {
    count_loss(work);
    const cuda::SerialTeam<512> team;
    for (uint64_t row = 0; row < rows; ++row) {
      cuda::cross_entropy_row<false>(team, work.logits + row * work.width.stride,
                                     work.gradient + row * work.width.stride, work.width,
                                     target_of(work.labels, row, rows, *work.values),
                                     cuda::loss_share(work.values->step_labels), work.losses + row,
                                     work.right == nullptr ? nullptr : work.right + row);
    }
    return Status::ok();
  }

  Status dropout(const cuda::DropoutWork<T>& work) override {
    ++calls;
    const uint64_t key = cuda::dropout_key(*work.stream.slot_key, work.stream.layer);
    for (uint64_t pair = 0; pair < (work.elements + 1) / 2; ++pair)
      cuda::dropout_elements(work, key, pair);
    return Status::ok();
  }

 protected:
  void count_loss(const CrossEntropy<T>& work) {
    ++calls;
    ++losses;
    if (work.gradient == work.logits) ++losses_in_place;
  }

 private:
  using Warp = cuda::SerialTeam<32>;
  static constexpr uint32_t kHeldGroups = 16;
  static constexpr uint32_t kWidestHeld = 1024;

  template <typename Source>
  static void walk(const Source& source, uint32_t rows, uint32_t n, float* partials) {
    for (uint64_t chunk = 0; chunk < cuda::column_chunks(rows); ++chunk)
      for (uint32_t g = 0; g < cuda::group_count<T>(n); ++g)
        cuda::sum_tile_group<false>(source, rows, n, chunk, g, partials);
  }

  static void sum_chunks(const float* partials, uint32_t rows, uint32_t n, float* sums) {
    for (uint32_t column = 0; column < n; ++column)
      sums[column] = cuda::sum_of_chunks(partials, cuda::column_chunks(rows), n, column);
  }
};

class HostFp8 : public Fp8Kernels {
 public:
  uint64_t calls = 0;

  Status cast(const cuda::Fp8Cast& work) override {
    ++calls;
    cuda::fp8_cast_on_host(work);
    return Status::ok();
  }
};

}  // namespace lockstep::testing
