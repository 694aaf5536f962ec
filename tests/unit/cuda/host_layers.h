// LayerKernels in loops on the CPU, with the functions that the kernels are made of.
#pragma once

#include "worker/cuda/column_sums.h"
#include "worker/cuda/gelu.h"
#include "worker/cuda/layer_kernels.h"

namespace lockstep::testing {

template <typename T>
class HostLayers : public LayerKernelsOf<T> {
 public:
  uint64_t calls = 0;
  uint64_t losses = 0;           // of them
  uint64_t losses_in_place = 0;  // of these

  Status norm(const cuda::LayerNormForward<T>& work, uint32_t rows, uint32_t n) override {
    ++calls;
    for (uint32_t row = 0; row < rows; ++row) cuda::layer_norm_row(Warp{}, work, row, n);
    return Status::ok();
  }

  Status norm_backward(const cuda::LayerNormBackward<T>& work, uint32_t rows, uint32_t n,
                       const NormGradients& to) override {
    ++calls;
    float* second = to.partials + cuda::column_chunks(rows) * n;
    sum_chunks(rows, n, to.partials, to.gain, [&](uint64_t chunk, uint32_t column) {
      return cuda::chunk_gain_gradient(work, rows, n, chunk, column);
    });
    sum_chunks(rows, n, second, to.bias, [&](uint64_t chunk, uint32_t column) {
      return cuda::chunk_sum(work.dy, rows, n, chunk, column);
    });
    for (uint32_t row = 0; row < rows; ++row) cuda::layer_norm_backward_row(Warp{}, work, row, n);
    return Status::ok();
  }

  Status bias_gelu(const BiasGelu<T>& work, uint32_t rows, uint32_t n) override {
    ++calls;
    for (uint64_t i = 0; i < uint64_t{rows} * n; ++i)
      work.y[i] = cuda::from_float<T>(cuda::gelu(cuda::to_float(work.x[i]) + work.bias[i % n]));
    return Status::ok();
  }

  Status bias_gelu_backward(const BiasGeluBackward<T>& work, uint32_t rows, uint32_t n,
                            const BiasGradient& to) override {
    ++calls;
    for (uint64_t i = 0; i < uint64_t{rows} * n; ++i) {
      const float slope = cuda::gelu_derivative(cuda::to_float(work.x[i]) + work.bias[i % n]);
      work.dx[i] = cuda::from_float<T>(cuda::to_float(work.dy[i]) * slope);
    }
    sum_chunks(rows, n, to.partials, to.bias, [&](uint64_t chunk, uint32_t column) {
      return cuda::chunk_sum(work.dx, rows, n, chunk, column);
    });
    return Status::ok();
  }

  Status cross_entropy(const CrossEntropy<T>& work, uint32_t rows) override {
    count_loss(work);
    const cuda::SerialTeam<256> team;
    for (uint64_t row = 0; row < rows; ++row) {
      const T* logits = work.logits + row * work.width.stride;
      const RowTarget target = target_of(work.labels, row, rows, *work.values);
      const bool is_right = cuda::is_right_row(team, logits, work.width, target.likelier());
      work.right[row] = is_right ? 1 : 0;
      cuda::cross_entropy_row(team, logits, work.gradient + row * work.width.stride, work.width,
                              target, cuda::loss_share(work.values->step_labels),
                              work.losses + row);
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

  template <typename ChunkSum>
  static void sum_chunks(uint32_t rows, uint32_t n, float* partials, float* sums,
                         const ChunkSum& chunk_sum) {
    const uint64_t chunks = cuda::column_chunks(rows);
    for (uint64_t chunk = 0; chunk < chunks; ++chunk)
      for (uint32_t column = 0; column < n; ++column)
        partials[chunk * n + column] = chunk_sum(chunk, column);
    for (uint32_t column = 0; column < n; ++column)
      sums[column] = cuda::sum_of_chunks(partials, chunks, n, column);
  }
};

}  // namespace lockstep::testing
