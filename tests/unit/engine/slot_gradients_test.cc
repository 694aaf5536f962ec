// Gradients of cast weights go to the region by a shorter way, with the same bits.
#include "worker/torch/engine/slot_gradients.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <bit>
#include <map>

#include "tests/unit/engine/loopback_world.h"
#include "worker/torch/engine/precision.h"
#include "worker/torch/model/layers.h"

namespace lockstep {
namespace {

// Between the forward and the gradients: counts what comes by the short way.
class CountingSink final : public GradientSink {
 public:
  explicit CountingSink(GradientSink& to) : to_(to) {}
  bool take_cast(uint32_t parameter, const at::Tensor& gradient) override {
    ++casts[parameter];
    EXPECT_NE(gradient.scalar_type(), at::kFloat);
    return to_.take_cast(parameter, gradient);
  }
  std::map<uint32_t, uint32_t> casts;

 private:
  GradientSink& to_;
};

class SlotGradientsOf : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr uint32_t kTokens = 6;

  SlotGradientsOf() {
    at::manual_seed(3);
    const bool is_text = GetParam() == std::string("gpt2");
    const wire::JobSpec job =
        is_text ? testing::small_gpt2(kTokens) : testing::small_job(GetParam());
    const auto dataset = is_text ? testing::make_text(4, kTokens) : testing::make_patterns(4, 12);
    model_ = make_model(job.model(), dataset->shape(), dataset->classes()).value();
    layout_ = make_flat_layout(model_->layout(), 1);
    x_ = is_text ? at::randint(0, dataset->classes(), {4, kTokens}, at::kLong)
                 : at::randn({4, 1, 12, 12}, at::kFloat);
    for (const ParameterSpec& spec : model_->layout().parameters)
      parameters_.push_back(at::randn(spec.shape, at::kFloat).mul_(0.2).set_requires_grad(true));
    for (const BufferSpec& spec : model_->layout().buffers)
      buffers_.push_back(at::ones({spec.size}, at::kFloat));
  }

  at::Tensor forward(at::ScalarType type, GradientSink* sink) {
    const AutocastScope autocast(at::kCPU, type);
    return model_->forward({.x = x_}, parameters_, buffers_, {.training = true, .sink = sink})
        .logits;
  }

  // The bits of the region, and how often each parameter was told.
  std::vector<uint32_t> backward(SlotGradients& gradients, const at::Tensor& logits) {
    std::vector<float> region(layout_.buffer.elements, 7.0F);
    std::vector<uint32_t> told(parameters_.size());
    gradients.backward(logits, at::ones_like(logits), region.data(),
                       [&](uint32_t parameter) { ++told[parameter]; });
    EXPECT_EQ(told, std::vector<uint32_t>(parameters_.size(), 1));
    std::vector<uint32_t> bits;
    for (const float value : region) bits.push_back(std::bit_cast<uint32_t>(value));
    return bits;
  }

  std::unique_ptr<Model> model_;
  FlatLayout layout_;
  at::Tensor x_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
};

TEST_P(SlotGradientsOf, CastWeightsHaveTheSameBitsByTheShortWay) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    SCOPED_TRACE(at::toString(type));
    SlotGradients gradients(layout_, parameters_);
    CountingSink sink(gradients);
    const std::vector<uint32_t> by_autograd = backward(gradients, forward(type, nullptr));
    EXPECT_TRUE(backward(gradients, forward(type, &sink)) == by_autograd);
    for (uint32_t i = 0; i < parameters_.size(); ++i) {
      const bool is_matrix = parameters_[i].dim() > 1;
      const bool is_embedding = model_->layout().parameters[i].name.starts_with("wte.") ||
                                model_->layout().parameters[i].name.starts_with("wpe.");
      if (type == at::kFloat || is_embedding) {
        EXPECT_EQ(sink.casts.count(i), 0) << model_->layout().parameters[i].name;
      } else if (is_matrix) {
        EXPECT_EQ(sink.casts[i], 1) << model_->layout().parameters[i].name;
      }
    }
  }
}

// As a trial does that computes gradients for itself.
TEST_P(SlotGradientsOf, OutsideOfBackwardWeightsGetTheirGradients) {
  SlotGradients gradients(layout_, parameters_);
  const at::Tensor logits = forward(at::kBFloat16, &gradients);
  const auto found = torch::autograd::grad({logits}, {parameters_[0]}, {at::ones_like(logits)});
  EXPECT_EQ(found[0].scalar_type(), at::kFloat);
  EXPECT_EQ(found[0].sizes(), parameters_[0].sizes());
}

TEST_P(SlotGradientsOf, AWeightOfTwoLayersIsRefused) {
  SlotGradients gradients(layout_, parameters_);
  const ForwardMode mode{.training = true, .sink = &gradients};
  const Forward f{parameters_, buffers_, mode};
  const AutocastScope autocast(at::kCPU, at::kBFloat16);
  const at::Tensor twice = cast_weight(f, 0).mul(2).add(cast_weight(f, 0));
  std::vector<float> region(layout_.buffer.elements);
  EXPECT_THROW(gradients.backward(twice, at::ones_like(twice), region.data(), nullptr), c10::Error);
}

INSTANTIATE_TEST_SUITE_P(Models, SlotGradientsOf, ::testing::Values("mlp", "cnn", "gpt2"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lockstep
