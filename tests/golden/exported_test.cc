// Exported programs train as PyTorch trains the models that they were exported from: losses,
// gradients and evaluation from exported/make.py.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "worker/torch/model/foreign.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

constexpr double kRelative = 1e-5;
constexpr double kAbsolute = 2e-5;  // of logits, for sums in another order
constexpr int64_t kGoldenBatch = 8;
constexpr int64_t kGoldenTokens = 20;
constexpr int64_t kGoldenClasses = 10;

std::string golden_program(const std::string& name) {
  return std::string(LOCKSTEP_GOLDEN_DIR) + "/exported/" + name;
}

// batch() of make.py.
struct GoldenBatch {
  explicit GoldenBatch(bool is_text) {
    x = is_text ? at::empty({kGoldenBatch, 8}, at::kLong) : at::empty({kGoldenBatch, 1, 8, 8});
    labels = at::empty({is_text ? x.numel() : kGoldenBatch}, at::kLong);
    auto* label = labels.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const int64_t chance = i * 7919 + 13;
      if (is_text) {
        x.mutable_data_ptr<int64_t>()[i] = chance % kGoldenTokens;
        label[i] = (chance % kGoldenTokens + 3) % kGoldenTokens;
      } else {
        x.mutable_data_ptr<float>()[i] = static_cast<float>(chance % 256) / 128 - 1;
      }
    }
    for (int64_t i = 0; !is_text && i < kGoldenBatch; ++i) label[i] = (i * 31 + 7) % kGoldenClasses;
  }
  at::Tensor x;
  at::Tensor labels;
};

struct Trained {
  std::unique_ptr<Model> model;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
};

Result<Trained> open(const std::string& name, bool is_text) {
  wire::ModelSpec spec;
  spec.set_name("exported");
  spec.set_path(golden_program(name + ".pt2"));
  if (const std::string eval = golden_program(name + ".eval.pt2"); std::filesystem::exists(eval))
    spec.set_eval_path(eval);
  const data::SampleShape shape =
      is_text ? data::SampleShape{.tokens = 8, .token_bytes = 1} : data::SampleShape{1, 8, 8};
  Trained out;
  LOCKSTEP_ASSIGN_OR_RETURN(out.model,
                            make_model(spec, shape, is_text ? kGoldenTokens : kGoldenClasses));
  InitialTensors initial = initial_tensors(out.model->layout());
  out.parameters = std::move(initial.parameters);
  out.buffers = std::move(initial.buffers);
  return out;
}

// One step of SGD with a learning rate of 0.1. Returns the loss.
double step(Trained& t, const GoldenBatch& batch, uint64_t seed, nlohmann::json* norms) {
  for (at::Tensor& p : t.parameters) p.mutable_grad().reset();
  const at::Tensor x = batch.x.clone();
  const at::Tensor logits =
      t.model->forward({.x = x}, t.parameters, t.buffers, {.training = true, .dropout_key = seed})
          .logits;
  EXPECT_TRUE(x.equal(batch.x)) << "the loader's memory has changed";
  const at::Tensor loss = at::cross_entropy_loss(logits.flatten(0, -2), batch.labels);
  torch::autograd::backward({loss}, {});
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < t.parameters.size(); ++i) {
    at::Tensor& p = t.parameters[i];
    if (!p.grad().defined()) continue;
    EXPECT_EQ(p.grad().layout(), at::kStrided);  // the engine's gradients are dense
    if (norms != nullptr)
      (*norms)[t.model->layout().parameters[i].name] =
          p.grad().to(at::kDouble).norm().item<double>();
    p.add_(p.grad(), -0.1);
  }
  return loss.item<double>();
}

class GoldenExported : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenExported, TrainsAndEvaluatesAsInPyTorch) {
  std::ifstream in(golden_program("expected.json"));
  const nlohmann::json expected = nlohmann::json::parse(in)[GetParam()];
  const bool is_text = expected["data"] == "sequences";
  auto trained = open(GetParam(), is_text);
  ASSERT_TRUE(trained.is_ok()) << trained.status().message();
  const GoldenBatch batch(is_text);
  const std::vector<double> losses = expected["losses"];
  nlohmann::json norms;
  int equal_bits = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const double loss = step(*trained, batch, 100 + i, i == 0 ? &norms : nullptr);
    EXPECT_NEAR(loss, losses[i], kRelative * losses[i]) << "step " << i;
    equal_bits += loss == losses[i] ? 1 : 0;
  }
  RecordProperty("losses_of_equal_bits", equal_bits);
  ASSERT_EQ(norms.size(), expected["gradient_norms"].size());
  for (const auto& [name, norm] : expected["gradient_norms"].items()) {
    ASSERT_TRUE(norms.contains(name)) << name;
    // A bias in front of a norm has no gradient but rounding, another one on each processor.
    EXPECT_NEAR(norms[name].get<double>(), norm.get<double>(),
                kRelative * norm.get<double>() + 1e-7)
        << name;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor logits =
      trained->model->forward({.x = batch.x}, trained->parameters, trained->buffers, {})
          .logits.contiguous();
  const std::vector<double> eval_logits = expected["eval_logits"];
  ASSERT_EQ(static_cast<size_t>(logits.numel()), eval_logits.size());
  for (size_t i = 0; i < eval_logits.size(); ++i)
    ASSERT_NEAR(logits.const_data_ptr<float>()[i], eval_logits[i],
                kAbsolute + kRelative * std::abs(eval_logits[i]))
        << "logit " << i;
}

INSTANTIATE_TEST_SUITE_P(Programs, GoldenExported,
                         ::testing::Values("mlp", "tied_lm", "convnet", "unet", "vit", "regions",
                                           "stochastic_depth", "counted", "sparse_embedding",
                                           "in_place_input", "strided", "from_two"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lockstep
