// Layers by kernel against LibTorch's operators: values and every gradient.
#include "worker/torch/model/kernel_layers.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "tests/unit/cuda/host_layers.h"
#include "worker/torch/engine/precision.h"

namespace lockstep {
namespace {

constexpr int64_t kWidth = 37;  // no multiple of a warp
constexpr uint64_t kKey = 5;
constexpr SlotValues kValues{.step_labels = 10};

at::Tensor noise(at::IntArrayRef shape, double offset = 0) {
  return at::randn(shape, at::kFloat).add_(offset);
}

class KernelLayers : public ::testing::Test {
 protected:
  KernelLayers() { at::manual_seed(7); }

  // Returns what a layer gives, and the gradients of its inputs and of `parameters`.
  using Layer = std::function<std::vector<at::Tensor>(const Forward&, std::span<const at::Tensor>)>;
  std::vector<at::Tensor> run(const Layer& layer, const std::vector<at::Tensor>& inputs,
                              const std::vector<at::Tensor>& parameters, bool by_kernel,
                              at::ScalarType type) {
    const auto fresh = [](const std::vector<at::Tensor>& of) {
      std::vector<at::Tensor> leaves;
      for (const at::Tensor& tensor : of) leaves.push_back(tensor.clone().set_requires_grad(true));
      return leaves;
    };
    std::vector<at::Tensor> from = fresh(inputs);
    const std::vector<at::Tensor> weights = fresh(parameters);
    ForwardMode mode{.training = true, .dropout_key = kKey, .dropout_key_at = &kKey};
    if (by_kernel) mode.kernels = {&floats, &bf16};
    std::vector<at::Tensor> results;
    {
      const AutocastScope autocast(at::kCPU, type);
      results = layer({weights, {}, mode}, from);
    }
    std::vector<at::Tensor> into;
    for (const at::Tensor& result : results)
      into.push_back(at::ones_like(result).mul_(0.5).add_(result.detach(), 0.1));
    torch::autograd::backward(results, into);
    from.insert(from.end(), weights.begin(), weights.end());
    for (const at::Tensor& leaf : from) results.push_back(leaf.grad());
    return results;
  }

  void expect_close(const Layer& layer, const std::vector<at::Tensor>& inputs,
                    const std::vector<at::Tensor>& parameters, at::ScalarType type,
                    double tolerance) {
    const auto expected = run(layer, inputs, parameters, false, type);
    EXPECT_EQ(floats.calls + bf16.calls, 0u);
    const auto got = run(layer, inputs, parameters, true, type);
    EXPECT_EQ(type == at::kFloat ? bf16.calls : floats.calls, 0u);
    EXPECT_GT(floats.calls + bf16.calls, 0u);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(got[i].defined() && expected[i].defined()) << i;
      EXPECT_TRUE(at::allclose(got[i].detach().to(at::kFloat), expected[i].detach().to(at::kFloat),
                               tolerance, tolerance))
          << "result " << i << " of " << got.size() << " is off by at most "
          << got[i]
                 .detach()
                 .to(at::kFloat)
                 .sub(expected[i].detach().to(at::kFloat))
                 .abs()
                 .max()
                 .item<float>();
    }
    floats.calls = bf16.calls = 0;
  }

  testing::HostLayers<float> floats;
  testing::HostLayers<cuda::Bf16> bf16;
};

TEST_F(KernelLayers, AddAndNormIsThatOfLibTorch) {
  const std::vector<at::Tensor> weights = {noise({kWidth}, 1), noise({kWidth})};
  const std::vector<at::Tensor> inputs = {noise({3, 50, kWidth}, 2), noise({3, 50, kWidth})};
  const Layer with_branch = [](const Forward& f, std::span<const at::Tensor> in) {
    const Normed normed = add_and_norm(f, in[0], in[1], 0);
    return std::vector<at::Tensor>{normed.stream, normed.y};
  };
  const Layer alone = [](const Forward& f, std::span<const at::Tensor> in) {
    const Normed normed = add_and_norm(f, in[0], {}, 0);
    return std::vector<at::Tensor>{normed.stream.mul(2), normed.y};
  };
  const Layer last = [](const Forward& f, std::span<const at::Tensor> in) {
    return std::vector<at::Tensor>{add_and_norm(f, in[0], in[1], 0).y};
  };
  for (const Layer& layer : {with_branch, last}) {
    expect_close(layer, inputs, weights, at::kFloat, 2e-5);
    expect_close(layer, inputs, weights, at::kBFloat16, 0.06);
  }
  expect_close(alone, {inputs[0]}, weights, at::kFloat, 2e-5);
  expect_close(alone, {inputs[0]}, weights, at::kBFloat16, 0.06);
}

TEST_F(KernelLayers, LinearWithGeluIsThatOfLibTorch) {
  const std::vector<at::Tensor> weights = {noise({29, kWidth}).div_(6), noise({29})};
  const Layer layer = [](const Forward& f, std::span<const at::Tensor> in) {
    return std::vector<at::Tensor>{linear_gelu(f, in[0], 0)};
  };
  expect_close(layer, {noise({3, 50, kWidth})}, weights, at::kFloat, 2e-5);
  expect_close(layer, {noise({3, 50, kWidth})}, weights, at::kBFloat16, 0.06);
}

// The gradient of logits comes in a matrix of its own, as LibTorch makes it, and in their place, as
// the kernel of the loss leaves it.
TEST_F(KernelLayers, LogitsOfAVocabularyThatIsNoMultipleOf128AreThoseOfLibTorch) {
  const std::vector<at::Tensor> embedding = {noise({130, kWidth}).div_(6)};
  const Layer layer = [](const Forward& f, std::span<const at::Tensor> in) {
    const at::Tensor logits = tied_logits(f, in[0], f.parameters[0]);
    EXPECT_EQ(logits.stride(1), f.mode.kernels.of_floats != nullptr ? 256 : 130);
    return std::vector<at::Tensor>{logits.mul(1)};
  };
  const at::Tensor x = noise({2, 5, kWidth});
  for (const auto& [type, tolerance] :
       {std::pair(at::kFloat, 2e-5), std::pair(at::kBFloat16, 0.06)}) {
    const auto expected = run(layer, {x}, embedding, false, type);
    const auto got = run(layer, {x}, embedding, true, type);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(at::allclose(got[i].detach().to(at::kFloat), expected[i].detach().to(at::kFloat),
                               tolerance, tolerance))
          << i;
  }
}

TEST_F(KernelLayers, AGradientInThePlaceOfTheLogitsGivesTheSameBits) {
  const at::Tensor weight = noise({130, kWidth});
  const at::Tensor x = noise({2, 5, kWidth});
  const at::Tensor labels = at::randint(0, 130, {10}, at::kLong);
  const auto gradients = [&](bool in_place) {
    const std::vector<at::Tensor> parameters = {weight.clone().set_requires_grad(true)};
    const at::Tensor from = x.clone().set_requires_grad(true);
    const ForwardMode mode{.training = true, .kernels = {&floats, &bf16}};
    const at::Tensor logits = tied_logits({parameters, {}, mode}, from, parameters[0]);
    EXPECT_EQ(logits.stride(1), 256);
    at::Tensor into = logits.detach();
    if (!in_place) into = at::empty({2, 5, 256}).narrow(-1, 0, 130);
    std::vector<float> losses(10);
    std::vector<uint32_t> right(10);
    EXPECT_TRUE(floats
                    .cross_entropy({logits.const_data_ptr<float>(),
                                    into.mutable_data_ptr<float>(),
                                    labels.const_data_ptr<int64_t>(),
                                    {130, 256},
                                    &kValues,
                                    losses.data(),
                                    right.data()},
                                   10)
                    .is_ok());
    torch::autograd::backward({logits}, {into});
    return std::vector<at::Tensor>{from.grad(), parameters[0].grad()};
  };
  const auto beside = gradients(false);
  const auto in_place = gradients(true);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(in_place[i], beside[i])) << i;
}

// Which elements are dropped, and the bits of what is kept.
TEST_F(KernelLayers, DropoutDropsTheSameElementsToTheSameBits) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t rows : {1, 4}) {  // an odd number of elements, and an even one
      const at::Tensor x = noise({rows, kWidth});
      const Layer layer = [type](const Forward& f, std::span<const at::Tensor> in) {
        return std::vector<at::Tensor>{dropout(f, in[0].to(type), 0.3, 2)};
      };
      const auto expected = run(layer, {x}, {}, false, at::kFloat);
      const auto got = run(layer, {x}, {}, true, at::kFloat);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], expected[i])) << i;
    }
  }
  EXPECT_EQ(floats.calls, 4u);
  EXPECT_EQ(bf16.calls, 4u);
}

TEST_F(KernelLayers, InFp16AndUnderAnObserverLibTorchsOperatorsAreTaken) {
  const Layer layer = [](const Forward& f, std::span<const at::Tensor> in) {
    return std::vector<at::Tensor>{add_and_norm(f, in[0], {}, 0).y};
  };
  const std::vector<at::Tensor> weights = {noise({kWidth}), noise({kWidth})};
  run(layer, {noise({2, kWidth})}, weights, true, at::kHalf);
  const ForwardMode::Observer observer = [](uint32_t, const at::Tensor&) {};
  const ForwardMode looked_at{.observer = &observer, .kernels = {&floats, &bf16}};
  (void)add_and_norm({weights, {}, looked_at}, noise({2, kWidth}), {}, 0);
  EXPECT_EQ(floats.calls + bf16.calls, 0u);
}

}  // namespace
}  // namespace lockstep
