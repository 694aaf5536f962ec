// GPT-2's layers by kernel against LibTorch's operators, both on the device: values and every
// gradient, in fp32 and bf16 (kernel_layers_test.cc does it in plain memory).
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <vector>

#include "tests/gpu/gpu_world.h"
#include "worker/torch/engine/precision.h"
#include "worker/torch/model/kernel_layers.h"

namespace lockstep {
namespace {

constexpr int64_t kWidth = 769;  // no multiple of a warp, and more than one round of it
constexpr int64_t kKey = 5;

class DeviceLayers : public testing::OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    devices_ = std::make_unique<testing::Devices>(1);
    module_ = devices_->modules[0];
    const Status current = module_->torch_queue()->make_current();
    ASSERT_TRUE(current.is_ok()) << current.message();
    where_ = at::Device(module_->torch_device());
    key_ = at::tensor({kKey}, at::kLong).to(where_);
    at::manual_seed(7);
  }

  at::Tensor noise(at::IntArrayRef shape, double offset = 0) const {
    return at::randn(shape, at::kFloat).add_(offset).to(where_);
  }

  using Layer = std::function<std::vector<at::Tensor>(const Forward&, std::span<const at::Tensor>)>;

  // Returns a layer's outputs, and the gradients of its inputs and of `parameters`.
  std::vector<at::Tensor> run(const Layer& layer, const std::vector<at::Tensor>& inputs,
                              const std::vector<at::Tensor>& parameters, bool by_kernel,
                              at::ScalarType type) const {
    const auto fresh = [](const std::vector<at::Tensor>& of) {
      std::vector<at::Tensor> leaves;
      for (const at::Tensor& tensor : of) leaves.push_back(tensor.clone().set_requires_grad(true));
      return leaves;
    };
    std::vector<at::Tensor> from = fresh(inputs);
    const std::vector<at::Tensor> weights = fresh(parameters);
    ForwardMode mode{.training = true,
                     .dropout_key = static_cast<uint64_t>(kKey),
                     .dropout_key_at = static_cast<const uint64_t*>(key_.const_data_ptr())};
    if (by_kernel) mode.kernels = module_->layers();
    std::vector<at::Tensor> results;
    {
      const AutocastScope autocast(where_.type(), type);
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
                    const std::vector<at::Tensor>& parameters) const {
    for (const auto& [type, tolerance] :
         {std::pair(at::kFloat, 1e-4), std::pair(at::kBFloat16, 0.06)}) {
      const auto expected = run(layer, inputs, parameters, false, type);
      const auto got = run(layer, inputs, parameters, true, type);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(got[i].defined() && expected[i].defined()) << i;
        const at::Tensor a = got[i].detach().to(at::kFloat);
        const at::Tensor b = expected[i].detach().to(at::kFloat);
        EXPECT_TRUE(at::allclose(a, b, tolerance, tolerance * std::max(1.0, scale_of(b))))
            << at::toString(type) << ": result " << i << " of " << got.size()
            << " is off by at most " << a.sub(b).abs().max().item<float>();
      }
    }
  }

  // Sums over many rows are as exact as their largest terms.
  static double scale_of(const at::Tensor& values) {
    return static_cast<double>(values.abs().max().item<float>());
  }

  std::unique_ptr<testing::Devices> devices_;
  DeviceModule* module_ = nullptr;
  at::Device where_{at::kCPU};
  at::Tensor key_;
};

// Rows that a warp holds, with and without wide loads and with the sums of its columns, and rows
// that it reads a second time (norms.cu).
TEST_F(DeviceLayers, AddAndNormIsThatOfLibTorchAtEveryWidth) {
  for (const int64_t width : {768, 769, 1000, 1600, 1601, 2056, 5001}) {
    SCOPED_TRACE(width);
    const std::vector<at::Tensor> weights = {noise({width}, 1), noise({width})};
    const std::vector<at::Tensor> inputs = {noise({3, 50, width}, 2), noise({3, 50, width})};
    expect_close(
        [](const Forward& f, std::span<const at::Tensor> in) {
          const Normed normed = add_and_norm(f, in[0], in[1], 0);
          return std::vector<at::Tensor>{normed.stream, normed.y};
        },
        inputs, weights);
    expect_close(
        [](const Forward& f, std::span<const at::Tensor> in) {
          return std::vector<at::Tensor>{add_and_norm(f, in[0], in[1], 0).y};
        },
        inputs, weights);
    expect_close(
        [](const Forward& f, std::span<const at::Tensor> in) {
          const Normed normed = add_and_norm(f, in[0], {}, 0);
          return std::vector<at::Tensor>{normed.stream.mul(2), normed.y};
        },
        {inputs[0]}, weights);
  }
}

TEST_F(DeviceLayers, LinearWithGeluIsThatOfLibTorchWithAndWithoutWideLoads) {
  for (const int64_t width : {517, 520}) {
    SCOPED_TRACE(width);
    expect_close(
        [](const Forward& f, std::span<const at::Tensor> in) {
          return std::vector<at::Tensor>{linear_gelu(f, in[0], 0)};
        },
        {noise({3, 50, kWidth})}, {noise({width, kWidth}).div_(28), noise({width})});
  }
}

// Sums over more chunks of rows than lanes add at once, twice to the same bits.
TEST_F(DeviceLayers, LayersOfManyRowsGiveTheSameBitsAgain) {
  const std::vector<at::Tensor> weights = {noise({768}, 1), noise({768}),
                                           noise({1024, 768}).div_(28), noise({1024})};
  const Layer layer = [](const Forward& f, std::span<const at::Tensor> in) {
    const Normed normed = add_and_norm(f, in[0], in[1], 0);
    return std::vector<at::Tensor>{normed.stream, linear_gelu(f, normed.y, 2)};
  };
  const std::vector<at::Tensor> inputs = {noise({4001, 768}), noise({4001, 768})};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto first = run(layer, inputs, weights, true, type);
    const auto again = run(layer, inputs, weights, true, type);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(first[i], again[i])) << i;
  }
  expect_close(layer, inputs, weights);
}

TEST_F(DeviceLayers, LogitsOfAVocabularyThatIsNoMultipleOf128AreThoseOfLibTorch) {
  expect_close(
      [](const Forward& f, std::span<const at::Tensor> in) {
        return std::vector<at::Tensor>{tied_logits(f, in[0], f.parameters[0]).mul(1)};
      },
      {noise({2, 5, kWidth})}, {noise({1030, kWidth}).div_(28)});
}

TEST_F(DeviceLayers, DropoutDropsTheSameElementsToTheSameBits) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t rows : {1, 400}) {  // an odd number of elements, and an even one
      const Layer layer = [type](const Forward& f, std::span<const at::Tensor> in) {
        return std::vector<at::Tensor>{dropout(f, in[0].to(type), 0.3, 2)};
      };
      const at::Tensor x = noise({rows, kWidth});
      const auto expected = run(layer, {x}, {}, false, at::kFloat);
      const auto got = run(layer, {x}, {}, true, at::kFloat);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], expected[i])) << i;
    }
  }
}

// GPT-2's vocabulary in rows that allow wide loads, and in rows that do not.
TEST_F(DeviceLayers, TheLossOfAVocabularyIsThatOfLibTorch) {
  constexpr int64_t kRows = 70;
  constexpr int64_t kClasses = 50'257;
  const at::Tensor labels = at::randint(0, kClasses, {kRows}, at::kLong).to(where_);
  const SlotValues on_host{.step_labels = kRows};
  const at::Tensor values =
      at::from_blob(const_cast<SlotValues*>(&on_host), {sizeof on_host}, at::kByte).to(where_);
  const auto check = [&]<typename T>(LayerKernelsOf<T>& kernels, at::ScalarType type,
                                     int64_t stride, double tolerance) {
    const at::Tensor wide = noise({kRows, stride}).mul_(3).to(type);
    const at::Tensor logits = wide.narrow(1, 0, kClasses).to(at::kFloat).set_requires_grad(true);
    const at::Tensor expected = at::cross_entropy_loss(logits, labels, {}, /*reduction=*/0);
    torch::autograd::backward({expected.mean()});
    const at::Tensor best = std::get<1>(logits.max(1)).eq(labels).to(at::kInt);
    const auto loss_of = [&](at::Tensor gradient) {
      const at::Tensor losses = at::empty({kRows}, logits.options().requires_grad(false));
      const at::Tensor right = at::empty({kRows}, labels.options().dtype(at::kInt));
      const Status status =
          kernels.cross_entropy({static_cast<const T*>(wide.const_data_ptr()),
                                 static_cast<T*>(gradient.mutable_data_ptr()),
                                 labels.const_data_ptr<int64_t>(),
                                 {static_cast<uint32_t>(kClasses), static_cast<uint32_t>(stride)},
                                 static_cast<const SlotValues*>(values.const_data_ptr()),
                                 losses.mutable_data_ptr<float>(),
                                 static_cast<uint32_t*>(right.mutable_data_ptr())},
                                kRows);
      EXPECT_TRUE(status.is_ok()) << status.message();
      EXPECT_TRUE(at::equal(right, best));
      return losses;
    };
    const at::Tensor gradient = at::empty_like(wide), again = at::empty_like(wide);
    const at::Tensor losses = loss_of(gradient);
    EXPECT_TRUE(at::allclose(losses, expected.detach(), 1e-5, 1e-5));
    EXPECT_TRUE(at::allclose(gradient.narrow(1, 0, kClasses).to(at::kFloat), logits.grad(),
                             tolerance, tolerance * scale_of(logits.grad())));
    EXPECT_EQ(scale_of(gradient.narrow(1, kClasses, stride - kClasses).to(at::kFloat)), 0);
    EXPECT_TRUE(at::equal(loss_of(again), losses));
    EXPECT_TRUE(at::equal(again, gradient));
  };
  for (const int64_t stride : {50'304, 50'259}) {
    SCOPED_TRACE(stride);
    check(*module_->layers().of_floats, at::kFloat, stride, 1e-5);
    check(*module_->layers().of_bf16, at::kBFloat16, stride, 0x1p-8);
  }
}

// The gradient of the loss may lie in the place of padded logits.
TEST_F(DeviceLayers, AGradientInThePlaceOfTheLogitsGivesTheSameBits) {
  constexpr int64_t kClasses = 1030;
  const at::Tensor weight = noise({kClasses, kWidth});
  const at::Tensor x = noise({2, 5, kWidth});
  const at::Tensor labels = at::randint(0, kClasses, {10}, at::kLong).to(where_);
  const SlotValues on_host{.step_labels = 10};
  const at::Tensor values =
      at::from_blob(const_cast<SlotValues*>(&on_host), {sizeof on_host}, at::kByte).to(where_);
  const auto gradients = [&](bool in_place) {
    const std::vector<at::Tensor> parameters = {weight.clone().set_requires_grad(true)};
    const at::Tensor from = x.clone().set_requires_grad(true);
    const ForwardMode mode{.training = true, .kernels = module_->layers()};
    const at::Tensor logits = tied_logits({parameters, {}, mode}, from, parameters[0]);
    const auto stride = static_cast<uint32_t>(logits.stride(1));
    EXPECT_EQ(stride, 1152u);
    at::Tensor into = logits.detach();
    if (!in_place) into = at::empty({2, 5, stride}, x.options()).narrow(-1, 0, kClasses);
    const at::Tensor losses = at::empty({10}, x.options());
    const at::Tensor right = at::empty({10}, x.options().dtype(at::kInt));
    const Status status = module_->layers().of_floats->cross_entropy(
        {logits.const_data_ptr<float>(),
         into.mutable_data_ptr<float>(),
         labels.const_data_ptr<int64_t>(),
         {static_cast<uint32_t>(kClasses), stride},
         static_cast<const SlotValues*>(values.const_data_ptr()),
         losses.mutable_data_ptr<float>(),
         static_cast<uint32_t*>(right.mutable_data_ptr())},
        10);
    EXPECT_TRUE(status.is_ok()) << status.message();
    torch::autograd::backward({logits}, {into});
    return std::vector<at::Tensor>{from.grad(), parameters[0].grad(), losses};
  };
  const auto beside = gradients(false);
  const auto in_place = gradients(true);
  for (size_t i = 0; i < beside.size(); ++i) EXPECT_TRUE(at::equal(in_place[i], beside[i])) << i;
}

}  // namespace
}  // namespace lockstep
