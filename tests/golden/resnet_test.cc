// Residual networks against PyTorch's in double precision (resnet.py says why): logits, and of each
// parameter's gradient its norm and its product with a pattern.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

constexpr double kRelative = 1e-7;

at::Tensor random_double(const ParameterSpec& spec, const nlohmann::json& golden, uint32_t index) {
  at::Tensor values = at::empty(spec.shape);
  init_parameter(spec, golden["seed"], index, values.mutable_data_ptr<float>());
  return values.to(at::kDouble);
}

struct Network {
  std::unique_ptr<Model> model;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
};

Network make_network(const nlohmann::json& golden, const std::string& name) {
  wire::ModelSpec spec;
  spec.set_name(name.substr(0, 8));
  spec.set_stem(golden["models"][name]["stem"]);
  const uint32_t side = golden["side"];
  data::SampleShape shape;
  shape.channels = 1;
  shape.height = side;
  shape.width = side;
  auto model = make_model(spec, shape, golden["classes"]);
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  Network network{std::move(model).value(), {}, {}};
  const ModelLayout& layout = network.model->layout();
  for (uint32_t i = 0; i < layout.parameters.size(); ++i) {
    network.parameters.push_back(
        random_double(layout.parameters[i], golden, i).set_requires_grad(true));
  }
  for (const BufferSpec& buffer : layout.buffers) {
    at::Tensor values = at::empty({buffer.size});
    init_buffer(buffer, values.mutable_data_ptr<float>());
    network.buffers.push_back(values.to(at::kDouble));
  }
  return network;
}

double product_with_pattern(const at::Tensor& gradient) {
  const double* values = gradient.const_data_ptr<double>();
  double sum = 0;
  for (int64_t i = 0; i < gradient.numel(); ++i)
    sum += values[i] * static_cast<double>(i * 7919 % 101 - 50);
  return sum;
}

class GoldenResnet : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenResnet, LogitsAndGradientsAreThoseOfPyTorch) {
  std::ifstream in(std::string(LOCKSTEP_GOLDEN_DIR) + "/resnet.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  const nlohmann::json& expected = golden["models"][GetParam()];
  const Network network = make_network(golden, GetParam());
  const int64_t samples = golden["samples"], side = golden["side"];
  const ParameterSpec images{"images", {samples, 1, side, side}, 0, 0, 1};
  const at::Tensor x = random_double(images, golden, golden["input"]);
  const at::Tensor logits =
      network.model->forward({.x = x}, network.parameters, network.buffers, {.training = true})
          .logits;
  const std::vector<double> wanted = expected["logits"];
  ASSERT_EQ(static_cast<size_t>(logits.numel()), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(logits.const_data_ptr<double>()[i], wanted[i], kRelative) << i;

  std::vector<int64_t> labels(static_cast<size_t>(samples));
  std::iota(labels.begin(), labels.end(), 0);
  const at::Tensor loss = at::cross_entropy_loss(
      logits, at::from_blob(labels.data(), {samples}, at::TensorOptions(at::kLong)));
  torch::autograd::backward({loss}, {});
  ASSERT_EQ(network.parameters.size(), expected["norms"].size());
  for (size_t i = 0; i < network.parameters.size(); ++i) {
    SCOPED_TRACE(network.model->layout().parameters[i].name);
    const at::Tensor gradient = network.parameters[i].grad().contiguous();
    const double norm = expected["norms"][i];
    EXPECT_NEAR(gradient.norm().item<double>(), norm, kRelative * norm);
    // The pattern's own norm is 29 * sqrt(n): what a rounding error of the gradient comes to.
    const double whole = 29 * std::sqrt(static_cast<double>(gradient.numel())) * norm;
    EXPECT_NEAR(product_with_pattern(gradient), expected["products"][i], kRelative * whole);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenResnet,
                         ::testing::Values("resnet18", "resnet50", "resnet50_imagenet"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace lockstep
