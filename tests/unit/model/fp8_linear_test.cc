// Compares linear layers in fp8: values with LibTorch's casts, products with the products of the
// same values in float.
#include "worker/torch/model/fp8_linear.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <map>

#include "tests/unit/cuda/host_layers.h"
#include "worker/torch/engine/precision.h"
#include "worker/torch/model/layers.h"
#include "worker/torch/recompute/recompute.h"

namespace lockstep {
namespace {

constexpr auto kE4M3 = at::ScalarType::Float8_e4m3fn;
constexpr auto kE5M2 = at::ScalarType::Float8_e5m2;

template <typename F>
void expect_libtorchs_values(at::ScalarType type, float largest) {
  const at::Tensor words = at::arange(0x10000, at::kInt).to(at::kShort);
  const at::Tensor x = words.view(at::kBFloat16).to(at::kFloat);
  const at::Tensor expected = x.clamp(-largest, largest).to(type).view(at::kByte);
  const at::Tensor back = x.clamp(-largest, largest).to(type).to(at::kFloat);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float value = x.const_data_ptr<float>()[i];
    const uint8_t bits = cuda::fp8_bits<F>(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(cuda::float_of_fp8<F>(bits))) << i;
    } else {
      ASSERT_EQ(bits, expected.const_data_ptr<uint8_t>()[i]) << value;
      ASSERT_EQ(cuda::float_of_fp8<F>(bits), back.const_data_ptr<float>()[i]) << value;
    }
  }
}

TEST(Fp8Values, AreLibTorchsForEveryBf16) {
  expect_libtorchs_values<cuda::E4M3>(kE4M3, 448);
  expect_libtorchs_values<cuda::E5M2>(kE5M2, 57344);
}

// Returns what fp8 makes of x, as floats.
at::Tensor rounded(const at::Tensor& x, at::ScalarType type) {
  const float most = type == kE4M3 ? 448.0f : 57344.0f;
  const at::Tensor from = x.detach().to(at::kBFloat16).to(at::kFloat);
  const float largest = from.abs().max().item<float>();
  const float scale = std::exp2(std::floor(std::log2(most / largest)));
  return from.mul(scale).to(type).to(at::kFloat).div(scale);
}

struct Result3 {
  at::Tensor y, dx, dw;
};
Result3 in_fp8(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& dy,
               Fp8Kernels* kernels = nullptr) {
  const at::Tensor from = x.clone().set_requires_grad(true);
  const at::Tensor w = weight.clone().set_requires_grad(true);
  const at::Tensor y = fp8_linear(from, w, kernels);
  torch::autograd::backward({y}, {dy.to(at::kBFloat16)});
  return {y.detach(), from.grad(), w.grad()};
}

// One rounding to bf16 apart, at most.
void expect_near(const at::Tensor& got, const at::Tensor& expected) {
  ASSERT_EQ(got.sizes(), expected.sizes());
  const auto most = expected.abs().max().item<float>();
  EXPECT_TRUE(at::allclose(got.to(at::kFloat), expected, 0x1p-8, 0x1p-8 * 1e-2 * most))
      << got.to(at::kFloat).sub(expected).abs().max().item<float>() << " of " << most;
}

TEST(Fp8Linear, AndItsGradientsAreTheProductsOfTheRoundedValues) {
  at::manual_seed(3);
  for (const int64_t rows : {1, 16, 37, 250}) {
    SCOPED_TRACE(rows);
    const at::Tensor x = at::randn({rows, 48}).mul(3);
    const at::Tensor weight = at::randn({80, 48}).mul(0.02);
    const at::Tensor dy = at::randn({rows, 80}).mul(1e-4);
    const Result3 got = in_fp8(x, weight, dy);
    EXPECT_EQ(got.y.scalar_type(), at::kBFloat16);
    const at::Tensor x8 = rounded(x, kE4M3), w8 = rounded(weight, kE4M3), g8 = rounded(dy, kE5M2);
    expect_near(got.y, at::mm(x8, w8.t()));
    expect_near(got.dx, at::mm(g8, w8));
    expect_near(got.dw, at::mm(g8.t(), x8));
    // It is not computed in bf16: what fp8 rounds away shows.
    EXPECT_GT(got.y.to(at::kFloat).sub(at::mm(x, weight.t())).abs().max().item<float>(), 1e-2f);
    testing::HostFp8 kernels;
    const Result3 by_kernel = in_fp8(x, weight, dy, &kernels);
    EXPECT_EQ(kernels.calls, 3u);
    EXPECT_TRUE(at::equal(by_kernel.y, got.y) && at::equal(by_kernel.dx, got.dx) &&
                at::equal(by_kernel.dw, got.dw));
  }
}

TEST(Fp8Linear, TakesXOfAnyDimensionsAndCastsTheWeightsBf16Value) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({2, 5, 32});
  const at::Tensor weight = at::randn({16, 32});
  const at::Tensor y = fp8_linear(x, weight, nullptr);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({2, 5, 16}));
  EXPECT_TRUE(at::equal(y.reshape({10, 16}), fp8_linear(x.reshape({10, 32}), weight, nullptr)));
  EXPECT_TRUE(at::equal(y, fp8_linear(x, weight.to(at::kBFloat16).to(at::kFloat), nullptr)));
}

TEST(Fp8Linear, HasTheSameBitsForAnyNumberOfThreads) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({512, 256}), weight = at::randn({768, 256});
  const at::Tensor dy = at::randn({512, 768});
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Result3 one = in_fp8(x, weight, dy);
  for (const int threads : {2, 3}) {
    at::set_num_threads(threads);
    const Result3 other = in_fp8(x, weight, dy);
    EXPECT_TRUE(at::equal(other.y, one.y) && at::equal(other.dx, one.dx) &&
                at::equal(other.dw, one.dw));
  }
  at::set_num_threads(before);
}

// LibTorch's operator takes the same operands, as on a GPU.
TEST(Fp8Matmul, IsLibTorchsScaledProductButForTheOrderOfItsSums) {
  at::manual_seed(6);
  const at::Tensor a = at::randn({48, 528}).mul(40);
  const at::Tensor scale = at::ones({1}).mul(0.25);
  const at::Tensor b = at::randn({64, 528}).mul(40).to(kE4M3);
  for (const auto type : {kE4M3, kE5M2}) {
    const at::Tensor a8 = a.to(type);
    const at::Tensor expected = at::mm(a8.to(at::kFloat), b.to(at::kFloat).t()).mul(0.25 * 0.25);
    expect_near(fp8_matmul({a8, scale}, {b, scale}, true), expected);
    expect_near(at::_scaled_mm(a8, b.t(), scale, scale, {}, {}, at::kBFloat16, true), expected);
  }
}

TEST(Fp8Linear, SaturatesNeverToNaNAndShowsWhatIsNoNumber) {
  const at::Tensor weight = at::ones({16, 16});
  at::Tensor x = at::randn({16, 16});
  x[3][4] = 3e38;
  x[5][6] = -3e38;
  const Result3 huge = in_fp8(x, weight, at::ones({16, 16}));
  EXPECT_TRUE(huge.dw.to(at::kFloat).isfinite().all().item<bool>());
  EXPECT_FALSE(huge.y.to(at::kFloat).isnan().any().item<bool>());
  x[3][4] = NAN;
  EXPECT_TRUE(in_fp8(x, weight, at::ones({16, 16})).y.isnan().all().item<bool>());
  EXPECT_TRUE(
      at::equal(in_fp8(at::zeros({16, 16}), weight, weight).y.to(at::kFloat), at::zeros({16, 16})));
}

// Takes gradients of weights as a slot does.
struct Sink final : GradientSink {
  bool take_cast(uint32_t parameter, const at::Tensor& gradient) override {
    EXPECT_EQ(gradient.scalar_type(), at::kBFloat16);
    return taken.emplace(parameter, gradient).second;
  }
  std::map<uint32_t, at::Tensor> taken;
};

struct LayerResult {
  at::Tensor y;
  at::Tensor dx;
  std::map<uint32_t, at::Tensor> taken;
};
LayerResult by_layer(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                     bool recomputes) {
  Sink sink;
  const ForwardMode mode{.training = true, .sink = &sink, .is_fp8 = true};
  const at::Tensor from = x.clone().set_requires_grad(true);
  at::Tensor y;
  {
    const AutocastScope autocast(at::kCPU, at::kBFloat16);
    if (recomputes) {
      const auto body = [&mode](std::span<const at::Tensor> in) {
        return std::vector<at::Tensor>{linear({in.subspan(1), {}, mode}, in[0], 0)};
      };
      y = recomputed(body, {from, parameters[0], parameters[1]})[0];
    } else {
      y = linear({parameters, {}, mode}, from, 0);
    }
  }
  torch::autograd::backward({y}, {at::ones(y.sizes(), y.options()).mul(0.5)});
  return {y.detach(), from.grad(), sink.taken};
}

TEST(Fp8Linear, AsALayerGivesItsGradientsToTheSinkInBf16AndTheSameOnesRecomputed) {
  at::manual_seed(8);
  const std::vector<at::Tensor> parameters = {at::randn({32, 16}).set_requires_grad(true),
                                              at::randn({32}).set_requires_grad(true)};
  const at::Tensor x = at::randn({3, 7, 16});
  const LayerResult kept = by_layer(parameters, x, false);
  const LayerResult again = by_layer(parameters, x, true);
  ASSERT_EQ(kept.taken.size(), 2u);
  ASSERT_EQ(again.taken.size(), 2u);
  EXPECT_FALSE(parameters[0].grad().defined());
  EXPECT_TRUE(at::equal(kept.y, again.y) && at::equal(kept.dx, again.dx));
  for (const uint32_t parameter : {0u, 1u})
    EXPECT_TRUE(at::equal(kept.taken.at(parameter), again.taken.at(parameter))) << parameter;
  EXPECT_TRUE(at::equal(
      kept.y, fp8_linear(x, parameters[0], nullptr).add(parameters[1].to(at::kBFloat16)).detach()));
}

}  // namespace
}  // namespace lockstep
