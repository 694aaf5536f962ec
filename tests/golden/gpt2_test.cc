// GPT-2 against the same model of PyTorch's own modules (gpt2.py): logits, loss and gradients under
// the same weights, and the first losses of a training on text.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/open/open_dataset.h"
#include "tests/unit/engine/loopback_world.h"
#include "worker/engine/loss.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

constexpr double kRelative = 1e-5;

nlohmann::json golden() {
  std::ifstream in(std::string(LOCKSTEP_GOLDEN_DIR) + "/gpt2.json");
  return nlohmann::json::parse(in);
}

wire::ModelSpec spec_of(const nlohmann::json& model) {
  wire::ModelSpec spec;
  spec.set_name("gpt2");
  spec.set_n_layer(model["n_layer"]);
  spec.set_n_head(model["n_head"]);
  spec.set_n_embd(model["n_embd"]);
  spec.set_block(model["block"]);
  spec.set_vocab(model["vocab"]);
  return spec;
}

// The tolerance is relative to the largest expected value.
void expect_near(const float* found, const std::vector<double>& expected, const std::string& what) {
  double largest = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], kRelative * largest) << what << " " << i;
}

struct Small {
  std::unique_ptr<Model> model;
  std::vector<at::Tensor> parameters;
  std::vector<int64_t> inputs;
  std::vector<int64_t> labels;
};

Small make_small(const nlohmann::json& expected) {
  Small small;
  data::SampleShape shape;
  shape.tokens = expected["model"]["block"];
  shape.token_bytes = 2;
  auto model = make_model(spec_of(expected["model"]), shape, expected["model"]["vocab"]);
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  small.model = std::move(model).value();
  const std::vector<ParameterSpec>& specs = small.model->layout().parameters;
  for (uint32_t i = 0; i < specs.size(); ++i) {
    const ParameterSpec random{specs[i].name, specs[i].shape, 0, 0, expected["std"]};
    at::Tensor p = at::empty(specs[i].shape);
    init_parameter(random, expected["seed"], i, p.mutable_data_ptr<float>());
    small.parameters.push_back(p.set_requires_grad(true));
  }
  for (const std::vector<int64_t> row : expected["tokens"]) {
    small.inputs.insert(small.inputs.end(), row.begin(), row.end() - 1);
    small.labels.insert(small.labels.end(), row.begin() + 1, row.end());
  }
  return small;
}

TEST(GoldenGpt2, LogitsLossAndGradientsAreThoseOfPyTorch) {
  const nlohmann::json expected = golden()["small"];
  const Small small = make_small(expected);
  const int64_t length = expected["model"]["block"];
  const uint64_t vocab = expected["model"]["vocab"];
  const at::Tensor x =
      at::from_blob(const_cast<int64_t*>(small.inputs.data()),
                    {static_cast<int64_t>(small.inputs.size()) / length, length}, at::kLong);
  const at::Tensor logits =
      small.model->forward({.x = x}, small.parameters, {}, {.training = true}).logits;
  expect_near(logits.const_data_ptr<float>(), expected["logits"], "logit");

  const at::Tensor gradient = at::empty(logits.sizes());
  SlotLoss loss;
  for (size_t i = 0; i < small.labels.size(); ++i)
    loss.add(softmax_cross_entropy(logits.const_data_ptr<float>() + i * vocab,
                                   {.label = small.labels[i]}, vocab, small.labels.size(),
                                   gradient.mutable_data_ptr<float>() + i * vocab));
  const double wanted = expected["loss"];
  EXPECT_NEAR(loss.sum / static_cast<double>(small.labels.size()), wanted, kRelative * wanted);

  torch::autograd::backward({logits}, {gradient});
  const nlohmann::json& parameters = expected["parameters"];
  ASSERT_EQ(small.parameters.size(), parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterSpec& spec = small.model->layout().parameters[i];
    EXPECT_EQ(spec.name, parameters[i]["name"]);
    EXPECT_EQ(spec.shape, std::vector<int64_t>(parameters[i]["shape"]));
    const at::Tensor found = small.parameters[i].grad().contiguous();
    expect_near(found.const_data_ptr<float>(), parameters[i]["gradient"], spec.name);
  }
}

TEST(GoldenGpt2, TrainsOnTextAsInPyTorch) {
  const nlohmann::json expected = golden()["trained"];
  wire::DatasetSpec text;
  text.set_path(std::string(LOCKSTEP_GOLDEN_DIR) + "/gpt2_text.txt");
  const auto dataset = data::open_dataset(text, data::Split::kTrain, /*cache_dir=*/"", {},
                                          {.block = expected["model"]["block"], .vocab = 0});
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->fingerprint(), expected["fingerprint"]);
  EXPECT_EQ((*dataset)->classes(), 256u);
  const std::vector<double> losses = expected["losses"];
  for (const uint32_t slots : {1u, 4u}) {
    SCOPED_TRACE(slots);
    wire::JobSpec job = testing::small_job("gpt2");
    *job.mutable_model() = spec_of(expected["model"]);
    job.mutable_data()->clear_transforms();
    job.set_seed(expected["seed"]);
    job.mutable_train()->set_global_batch(expected["batch"]);
    job.mutable_train()->set_slots(slots);
    job.mutable_optimizer()->set_lr(expected["lr"]);
    job.mutable_optimizer()->set_weight_decay(expected["weight_decay"]);
    job.mutable_optimizer()->set_spare_vectors(true);
    testing::LoopbackWorld world(job, **dataset, testing::even_runs(slots, slots > 1 ? 2 : 1));
    world.begin_generation(losses.size());
    const std::vector<double> found = world.train_to(losses.size()).losses;
    ASSERT_EQ(found.size(), losses.size());
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(found[i], losses[i], kRelative * losses[i]) << "step " << i;
  }
}

}  // namespace
}  // namespace lockstep
