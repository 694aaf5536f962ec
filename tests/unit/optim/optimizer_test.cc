#include "worker/optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "comm/base/prng.h"
#include "tests/support/fails_with.h"
#include "tests/support/same_bits.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kElements = 80;

wire::OptimizerSpec adamw() {
  wire::OptimizerSpec spec;
  spec.set_name("adamw");
  spec.set_lr(0.01);
  spec.set_beta1(0.9);
  spec.set_beta2(0.999);
  spec.set_eps(1e-8);
  spec.set_weight_decay(0.1);
  return spec;
}

wire::OptimizerSpec sgd(double momentum) {
  wire::OptimizerSpec spec;
  spec.set_name("sgd");
  spec.set_lr(0.1);
  spec.set_momentum(momentum);
  spec.set_weight_decay(0.01);
  return spec;
}

// Returns specs with every state and term that an optimizer has.
std::vector<wire::OptimizerSpec> every_kind() {
  std::vector<wire::OptimizerSpec> specs = {adamw(), sgd(0.9), sgd(0)};
  specs.push_back(sgd(0.9));
  specs.back().set_nesterov(true);
  for (const char* name : {"adam", "nadam", "rmsprop", "adagrad", "adadelta"}) {
    specs.push_back(adamw());
    specs.back().set_name(name);
    specs.back().set_momentum_decay(0.004);
    specs.back().set_alpha(0.9);
    specs.back().set_rho(0.9);
  }
  specs.push_back(specs[6]);  // rmsprop
  specs.back().set_centered(true);
  specs.back().set_momentum(0.8);
  return specs;
}

std::vector<float> noise(uint64_t key) {
  std::vector<float> out;
  for (uint64_t i = 0; i < kElements; ++i)
    out.push_back(static_cast<float>(stream_value(key, i) % 2001) / 1000 - 1);
  return out;
}

// Five steps over `segments`; the parameters afterwards.
std::vector<float> run(const wire::OptimizerSpec& spec,
                       const std::vector<OptimizerSegment>& segments,
                       const std::vector<OptimizerGroup>& groups) {
  auto optimizer = std::move(Optimizer::create(spec, kElements)).value();
  std::vector<float> params = noise(1);
  for (Step step = 0; step < 5; ++step)
    optimizer->update({step, spec.lr(), 1}, segments, groups, params.data(),
                      noise(step + 2).data());
  return params;
}

// The textbook in double, one element at a time.
double textbook(const wire::OptimizerSpec& spec, uint64_t i, double weight_decay) {
  double p = noise(1)[i], m = 0, v = 0;
  for (int t = 1; t <= 5; ++t) {
    double g = noise(static_cast<uint64_t>(t) + 1)[i];
    if (spec.name() == "sgd") {
      g += weight_decay * p;
      m = spec.momentum() * m + g;
      p -= spec.lr() * m;
    } else {
      p *= 1 - spec.lr() * weight_decay;
      m = spec.beta1() * m + (1 - spec.beta1()) * g;
      v = spec.beta2() * v + (1 - spec.beta2()) * g * g;
      const double m_hat = m / (1 - std::pow(spec.beta1(), t));
      const double v_hat = v / (1 - std::pow(spec.beta2(), t));
      p -= spec.lr() * m_hat / (std::sqrt(v_hat) + spec.eps());
    }
  }
  return p;
}

TEST(Optimizer, FollowsTheTextbook) {
  for (const auto& spec : {adamw(), sgd(0.9), sgd(0)}) {
    SCOPED_TRACE(spec.name());
    const auto params = run(spec, {{0, kElements, 0}}, {{}});
    for (uint64_t i = 0; i < kElements; ++i)
      EXPECT_NEAR(params[i], textbook(spec, i, spec.weight_decay()), 2e-6);
  }
}

TEST(Optimizer, GivesTheSameBitsWhereverTheBufferIsCut) {
  for (const auto& spec : every_kind()) {
    SCOPED_TRACE(spec.ShortDebugString());
    const auto whole = run(spec, {{0, kElements, 0}}, {{}});
    for (const uint64_t cut : {1u, 7u, 16u, 33u, 79u}) {
      const auto parts = run(spec, {{0, cut, 0}, {cut, kElements - cut, 0}}, {{}});
      EXPECT_TRUE(same_bits(parts, whole)) << cut;
    }
  }
}

TEST(Optimizer, GroupsScaleRateAndDecayOfTheirSegmentsOnly) {
  const auto params =
      run(adamw(), {{0, 40, 0}, {40, 40, 1}}, {{}, {.lr_scale = 1, .weight_decay_scale = 0}});
  EXPECT_NEAR(params[3], textbook(adamw(), 3, 0.1), 2e-6);
  EXPECT_NEAR(params[43], textbook(adamw(), 43, 0), 2e-6);
}

TEST(Optimizer, PaddingStaysZero) {
  for (const auto& spec : every_kind()) {
    SCOPED_TRACE(spec.ShortDebugString());
    auto optimizer = std::move(Optimizer::create(spec, 16)).value();
    std::vector<float> zeros(16), params(16);
    const OptimizerSegment all{0, 16, 0};
    const OptimizerGroup group;
    for (Step step = 0; step < 3; ++step)
      optimizer->update({step, 0.1, 1}, {&all, 1}, {&group, 1}, params.data(), zeros.data());
    EXPECT_EQ(params, zeros);
  }
}

// A run that resumes makes the same steps as one that was never interrupted.
TEST(Optimizer, DependsOnTheStepsNumberNotOnThoseItHasSeen) {
  for (const auto& spec : every_kind()) {
    SCOPED_TRACE(spec.ShortDebugString());
    const OptimizerSegment all{0, kElements, 0};
    const OptimizerGroup group;
    auto first = std::move(Optimizer::create(spec, kElements)).value();
    std::vector<float> params = noise(1);
    for (Step step = 0; step < 3; ++step)
      first->update({step, 0.01, 1}, {&all, 1}, {&group, 1}, params.data(), noise(step + 2).data());
    auto second = std::move(Optimizer::create(spec, kElements)).value();
    for (size_t i = 0; i < first->state().size(); ++i)
      std::memcpy(second->state()[i].data, first->state()[i].data, kElements * sizeof(float));
    std::vector<float> resumed = params;
    first->update({3, 0.01, 1}, {&all, 1}, {&group, 1}, params.data(), noise(5).data());
    second->update({3, 0.01, 1}, {&all, 1}, {&group, 1}, resumed.data(), noise(5).data());
    EXPECT_TRUE(same_bits(params, resumed));
  }
}

TEST(Optimizer, ScalesGradientsBeforeAnythingElse) {
  for (const auto& spec : every_kind()) {
    SCOPED_TRACE(spec.ShortDebugString());
    const OptimizerSegment all{0, kElements, 0};
    const OptimizerGroup group;
    std::vector<float> halved = noise(2);
    for (float& g : halved) g *= 0.5f;
    std::vector<float> a = noise(1), b = noise(1);
    std::move(Optimizer::create(spec, kElements))
        .value()
        ->update({0, 0.01, 0.5f}, {&all, 1}, {&group, 1}, a.data(), noise(2).data());
    std::move(Optimizer::create(spec, kElements))
        .value()
        ->update({0, 0.01, 1}, {&all, 1}, {&group, 1}, b.data(), halved.data());
    EXPECT_EQ(a, b);
  }
}

TEST(Optimizer, RefusesUnknownNamesAndImpossibleValues) {
  wire::OptimizerSpec spec = adamw();
  spec.set_name("rmsprob");
  Status status = Optimizer::create(spec, 16).status();
  EXPECT_THAT(status, FailsWith(Code::kUsage, Suggests("rmsprop")));
  spec.set_name("lbfgs");
  EXPECT_THAT(Optimizer::create(spec, 16).status().message(), Says("moves"));
  spec = adamw();
  spec.set_beta2(1);
  EXPECT_THAT(Optimizer::create(spec, 16).status().message(), HasSubstr("optimizer.beta2"));
  spec = sgd(1.5);
  EXPECT_THAT(Optimizer::create(spec, 16).status().message(), HasSubstr("optimizer.momentum"));
  spec = sgd(0);
  spec.set_nesterov(true);
  EXPECT_THAT(Optimizer::create(spec, 16).status().message(), HasSubstr("optimizer.nesterov"));
  spec = sgd(0.9);
  spec.set_lr(std::nan(""));
  EXPECT_THAT(Optimizer::create(spec, 16).status().message(), HasSubstr("optimizer.lr"));
}

}  // namespace
}  // namespace lockstep
