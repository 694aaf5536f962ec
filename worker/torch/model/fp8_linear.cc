#include "worker/torch/model/fp8_linear.h"

#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <vector>

#include "worker/cuda/kernels/fp8_host.h"

namespace lockstep {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A matrix (rows, columns) and its transpose, with the rows padded.
struct Fp8Both {
  at::Tensor plain;
  at::Tensor transposed;
  at::Tensor inverse_scale;

  Fp8Matrix as_is() const { return {plain, inverse_scale}; }
  Fp8Matrix turned() const { return {transposed, inverse_scale}; }
};

// x: (rows, columns) bf16.
Fp8Both cast_to_fp8(const at::Tensor& x, bool is_gradient, Fp8Kernels* kernels) {
  const at::Tensor from = x.contiguous();
  const int64_t rows = from.size(0);
  const int64_t columns = from.size(1);
  const int64_t padded = (rows + cuda::kFp8Multiple - 1) / cuda::kFp8Multiple * cuda::kFp8Multiple;
  const at::TensorOptions words = from.options().dtype(at::kInt);
  const at::TensorOptions bytes = from.options().dtype(is_gradient ? at::ScalarType::Float8_e5m2
                                                                   : at::ScalarType::Float8_e4m3fn);
  const at::Tensor largest = at::empty({1}, words);
  Fp8Both to{at::empty({padded, columns}, bytes), at::empty({columns, padded}, bytes),
             at::empty({1}, words.dtype(at::kFloat))};
  const cuda::Fp8Cast work{.x = static_cast<const cuda::Bf16*>(from.const_data_ptr()),
                           .rows = static_cast<uint32_t>(rows),
                           .columns = static_cast<uint32_t>(columns),
                           .padded_rows = static_cast<uint32_t>(padded),
                           .is_gradient = is_gradient,
                           .largest = static_cast<uint32_t*>(largest.mutable_data_ptr()),
                           .inverse_scale = to.inverse_scale.mutable_data_ptr<float>(),
                           .plain = static_cast<uint8_t*>(to.plain.mutable_data_ptr()),
                           .transposed = static_cast<uint8_t*>(to.transposed.mutable_data_ptr())};
  if (kernels != nullptr) {
    const Status status = kernels->cast(work);
    TORCH_CHECK(status.is_ok(), status.message());
  } else {
    TORCH_CHECK(from.is_cpu(), "a device without kernels for fp8");
    cuda::fp8_cast_on_host(work);
  }
  return to;
}

// By the bits of the value.
template <typename F>
const std::array<uint16_t, 256>& bf16_table() {
  static const std::array<uint16_t, 256> table = [] {
    std::array<uint16_t, 256> made{};
    for (uint32_t bits = 0; bits < made.size(); ++bits)
      made[bits] =
          cuda::from_float<cuda::Bf16>(cuda::float_of_fp8<F>(static_cast<uint8_t>(bits))).bits;
    return made;
  }();
  return table;
}

// Exact: LibTorch's own cast takes longer than the product.
at::Tensor widened(const at::Tensor& values) {
  const bool is_e5m2 = values.scalar_type() == at::ScalarType::Float8_e5m2;
  const auto& table = is_e5m2 ? bf16_table<cuda::E5M2>() : bf16_table<cuda::E4M3>();
  const at::Tensor from = values.contiguous();
  const at::Tensor to = at::empty(from.sizes(), from.options().dtype(at::kBFloat16));
  const auto* in = static_cast<const uint8_t*>(from.const_data_ptr());
  auto* out = static_cast<uint16_t*>(to.mutable_data_ptr());
  for (int64_t i = 0; i < from.numel(); ++i) out[i] = table[in[i]];
  return to;
}

at::Tensor first_rows(const at::Tensor& padded, int64_t rows) {
  return padded.size(0) == rows ? padded : padded.narrow(0, 0, rows);
}

struct Fp8Linear : torch::autograd::Function<Fp8Linear> {
  // x: (rows, K), weight: (N, K).
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            Fp8Kernels* kernels) {
    const Fp8Both x8 = cast_to_fp8(x, /*is_gradient=*/false, kernels);
    const Fp8Both w8 = cast_to_fp8(weight, /*is_gradient=*/false, kernels);
    ctx->save_for_backward({x8.transposed, x8.inverse_scale, w8.transposed, w8.inverse_scale});
    // A context keeps addresses as numbers.
    ctx->saved_data["kernels"] = reinterpret_cast<int64_t>(kernels);
    return first_rows(fp8_matmul(x8.as_is(), w8.as_is(), /*is_fast=*/true), x.size(0));
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    // NOLINTNEXTLINE(performance-no-int-to-ptr): as forward() put it there
    auto* kernels = reinterpret_cast<Fp8Kernels*>(ctx->saved_data["kernels"].toInt());
    const at::Tensor& dy = gradients[0];
    const Fp8Both dy8 = cast_to_fp8(dy, /*is_gradient=*/true, kernels);
    variable_list out(3);
    if (ctx->needs_input_grad(0))
      out[0] =
          first_rows(fp8_matmul(dy8.as_is(), {saved[2], saved[3]}, /*is_fast=*/false), dy.size(0));
    if (ctx->needs_input_grad(1))
      out[1] = fp8_matmul(dy8.turned(), {saved[0], saved[1]}, /*is_fast=*/false);
    return out;
  }
};

}  // namespace

at::Tensor fp8_matmul(const Fp8Matrix& a, const Fp8Matrix& b, bool is_fast) {
  if (!a.values.is_cpu())
    return at::_scaled_mm(a.values, b.values.t(), a.inverse_scale, b.inverse_scale, /*bias=*/{},
                          /*scale_result=*/{}, at::kBFloat16, is_fast);
  return at::mm(widened(a.values), widened(b.values).t())
      .mul_(a.inverse_scale.mul(b.inverse_scale));
}

at::Tensor fp8_linear(const at::Tensor& x, const at::Tensor& weight, Fp8Kernels* kernels) {
  std::vector<int64_t> shape = x.sizes().vec();
  const at::Tensor y = Fp8Linear::apply(x.to(at::kBFloat16).reshape({-1, shape.back()}),
                                        weight.to(at::kBFloat16), kernels);
  shape.back() = weight.size(0);
  return y.reshape(shape);
}

}  // namespace lockstep
