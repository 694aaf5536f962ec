#include "worker/torch/device/muon_update.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

namespace lockstep {
namespace {

constexpr double kTinyNorm = 1e-7;
constexpr double kLinear = 3.4445;  // coefficients of the quintic
constexpr double kCubic = -4.7750;
constexpr double kQuintic = 2.0315;
constexpr int kIterations = 5;

// Near to U V^T of the singular value decomposition U S V^T.
at::Tensor orthogonalized(const at::Tensor& matrix) {
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = matrix.to(at::kBFloat16);
  if (is_tall) x = x.t();
  x.div_(at::linalg_vector_norm(x).clamp_min(kTinyNorm));
  // A processor without instructions for bfloat16 multiplies it a hundred times slower than
  // float32. Products of bfloat16 are exact in float32, and LibTorch sums them there, too.
  const bool is_cpu = x.is_cpu();
  const auto rounded = [is_cpu](const at::Tensor& product) {
    return is_cpu ? product.to(at::kBFloat16).to(at::kFloat) : product;
  };
  if (is_cpu) x = x.to(at::kFloat);
  for (int i = 0; i < kIterations; ++i) {
    const at::Tensor gram = rounded(at::mm(x, x.t()));
    const at::Tensor update =
        rounded(at::addmm(gram, gram, gram, /*beta=*/kCubic, /*alpha=*/kQuintic));
    x = rounded(at::addmm(x, update, x, /*beta=*/kLinear));
  }
  return is_tall ? x.t() : x;
}

void update_matrix(const MuonFactors& factors, const at::Tensor& gradient, bool keeps_zeros,
                   at::Tensor momentum, at::Tensor param) {
  momentum.lerp_(gradient, 1 - factors.momentum);
  const at::Tensor direction =
      factors.is_nesterov ? gradient.lerp(momentum, factors.momentum) : momentum;
  const at::Tensor update = orthogonalized(direction);
  const at::Tensor zeros = keeps_zeros ? param.eq(0) : at::Tensor();
  param.mul_(factors.decay);
  param.add_(update, -factors.rate);
  if (keeps_zeros) param.masked_fill_(zeros, 0);
}

}  // namespace

void update_matrices(const wire::OptimizerSpec& spec, at::Device where,
                     std::span<const MatrixSegment> matrices, const OptimizerStep& step,
                     std::span<const OptimizerGroup> groups, const MatrixBuffers& buffers) {
  const at::NoGradGuard no_gradients;
  const at::TensorOptions options(where);
  for (const MatrixSegment& matrix : matrices) {
    const auto view = [&](const float* data) {
      return at::for_blob(const_cast<float*>(data) + matrix.start, {matrix.rows, matrix.columns})
          .options(options.dtype(at::kFloat))
          .target_device(where)
          .make_tensor();
    };
    at::Tensor gradient = view(buffers.grads);
    if (step.grad_scale != 1) gradient = gradient.mul(static_cast<double>(step.grad_scale));
    update_matrix(muon_factors(spec, step.lr, groups[matrix.group], matrix), gradient,
                  step.keeps_zeros && matrix.is_pruned, view(buffers.momentum),
                  view(buffers.params));
  }
}

}  // namespace lockstep
