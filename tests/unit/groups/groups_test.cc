// optimizer.groups through the engine: factors, and what frozen parameters no longer cost.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fails_with.h"
#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"
#include "worker/engine/parameter_groups.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::PlainModule;
using testing::small_job;

constexpr Step kSteps = 6;
constexpr uint64_t kBucketBytes = 4096;

wire::JobSpec job_of(const std::string& optimizer = "adamw") {
  wire::JobSpec job = small_job("cnn");
  job.mutable_model()->set_batch_norm(true);
  wire::OptimizerSpec& spec = *job.mutable_optimizer();
  spec.set_name(optimizer);
  spec.set_weight_decay(0.01);
  if (optimizer == "sgd") spec.set_momentum(0.9);
  return job;
}

wire::JobSpec& add_group(wire::JobSpec& job, const std::string& match, double lr, double decay,
                         bool freeze = false) {
  wire::OptimizerGroupSpec& group = *job.mutable_optimizer()->add_groups();
  group.set_match(match);
  group.set_lr(lr);
  group.set_weight_decay(decay);
  group.set_freeze(freeze);
  return job;
}

wire::JobSpec frozen_convolutions(const std::string& optimizer = "adamw") {
  wire::JobSpec job = job_of(optimizer);
  return add_group(job, "conv[12].*", 1, 1, /*freeze=*/true);
}

using Tensors = std::map<std::string, std::string>;  // bytes by name

Tensors tensors_of(Engine& engine) {
  Tensors out;
  for (const StateTensor& tensor : testing::state_of(engine))
    out[tensor.name] = {reinterpret_cast<const char*>(tensor.data), tensor.bytes};
  return out;
}

Tensors trained(const wire::JobSpec& job, uint32_t ranks = 1,
                const std::vector<DeviceModule*>& modules = {}) {
  const auto dataset = make_patterns(83);
  LoopbackWorld world(job, *dataset, even_runs(4, ranks), kBucketBytes, nullptr, modules);
  world.begin_generation(kSteps);
  world.train_to(kSteps);
  return tensors_of(world.engine(0));
}

Status refused(const wire::JobSpec& job) {
  const auto dataset = make_patterns(20);
  return testing::make_engine(job, *dataset).status();
}

TEST(Groups, FactorsAreThoseOfTheWholeJobIfAGroupHasEverything) {
  for (const char* optimizer :
       {"sgd", "adam", "adamw", "nadam", "rmsprop", "adagrad", "adadelta"}) {
    SCOPED_TRACE(optimizer);
    wire::JobSpec grouped = job_of(optimizer);
    add_group(grouped, "*", 2, 0.5);
    wire::JobSpec plain = job_of(optimizer);
    plain.mutable_optimizer()->set_lr(2 * grouped.optimizer().lr());
    plain.mutable_optimizer()->set_weight_decay(0.5 * grouped.optimizer().weight_decay());
    EXPECT_EQ(trained(grouped), trained(plain));
    EXPECT_NE(trained(grouped), trained(job_of(optimizer)));
  }
}

// It does not matter what its group says.
TEST(Groups, AVectorIsSparedInAGroupToo) {
  ModelLayout model;
  model.parameters.push_back({.name = "fc.weight", .shape = {2, 2}});
  model.parameters.push_back({.name = "fc.bias", .shape = {2}});
  wire::JobSpec job = job_of();
  job.mutable_optimizer()->set_spare_vectors(true);
  const auto groups = resolve_groups(model, add_group(job, "fc.*", 2, 3).optimizer());
  ASSERT_TRUE(groups.is_ok()) << groups.status().message();
  const OptimizerGroup& weight = groups->table[groups->group_of[0]];
  const OptimizerGroup& bias = groups->table[groups->group_of[1]];
  EXPECT_EQ(weight.weight_decay_scale, 3);
  EXPECT_EQ(bias.weight_decay_scale, 0);
  EXPECT_EQ(bias.lr_scale, 2);
}

TEST(Groups, TheFirstThatMatchesHolds) {
  wire::JobSpec two = job_of("sgd");
  add_group(two, "fc2.*", 0, 0);
  add_group(two, "fc*", 2, 1);
  wire::JobSpec first = job_of("sgd");
  const auto dataset = make_patterns(83);
  LoopbackWorld fresh(first, *dataset, even_runs(4, 1));
  const Tensors initial = tensors_of(fresh.engine(0));
  const Tensors after = trained(two);
  EXPECT_EQ(after.at("fc2.weight"), initial.at("fc2.weight"));
  EXPECT_NE(after.at("fc1.weight"), initial.at("fc1.weight"));
}

TEST(Groups, FrozenParametersKeepTheirValuesAndOthersTrainAsWithARateOfZero) {
  const wire::JobSpec frozen = frozen_convolutions("sgd");
  wire::JobSpec still = job_of("sgd");
  add_group(still, "conv[12].*", 0, 0);
  const Tensors with = trained(frozen);
  const Tensors without = trained(still);
  for (const auto& [name, bytes] : with) EXPECT_EQ(bytes, without.at(name)) << name;
  for (const char* gone : {"momentum_buffer.conv1.weight", "momentum_buffer.conv2.bias"}) {
    EXPECT_EQ(with.count(gone), 0u);
    EXPECT_EQ(without.count(gone), 1u);
  }
  EXPECT_EQ(with.count("momentum_buffer.fc1.weight"), 1u);
}

TEST(Groups, FrozenParametersCostNoSumAndNoState) {
  const auto dataset = make_patterns(83);
  const auto whole = testing::make_engine(job_of(), *dataset).value();
  const auto part = testing::make_engine(frozen_convolutions(), *dataset).value();
  const auto bytes = [](Engine& engine, StateSection section) {
    uint64_t sum = 0;
    for (const StateTensor& tensor : testing::state_of(engine))
      if (tensor.section == section) sum += tensor.bytes;
    return sum;
  };
  uint64_t frozen = 0;
  for (const StateTensor& tensor : testing::state_of(*part))
    if (tensor.name.starts_with("conv")) frozen += tensor.bytes;
  ASSERT_GT(frozen, 0u);
  EXPECT_EQ(bytes(*whole, StateSection::kParameter), bytes(*part, StateSection::kParameter));
  EXPECT_EQ(bytes(*whole, StateSection::kOptimizer) - bytes(*part, StateSection::kOptimizer),
            2 * frozen);  // exp_avg and exp_avg_sq
  const BufferLayout& all = whole->gradient_buffer().layout();
  const BufferLayout& fewer = part->gradient_buffer().layout();
  EXPECT_GE((all.elements - fewer.elements) * sizeof(float), frozen);
  EXPECT_EQ(part->tensor_bounds().back(), fewer.gradients);
}

TEST(Groups, AnyNumberOfRanksAndADeviceGiveTheSameBits) {
  wire::JobSpec job = frozen_convolutions();
  job.mutable_optimizer()->set_clip_norm(0.5);
  job.mutable_optimizer()->set_spare_vectors(true);
  add_group(job, "fc2.*", 3, 0);
  const Tensors one = trained(job);
  for (const uint32_t ranks : {2u, 3u, 4u}) EXPECT_EQ(trained(job, ranks), one) << ranks;
  PlainModule first;
  PlainModule second;
  EXPECT_EQ(trained(job, 2, {&first, &second}), one);
}

TEST(Groups, HalfPrecisionGivesFrozenWeightsNoGradient) {
  for (const char* precision : {"bf16", "fp16"}) {
    wire::JobSpec job = frozen_convolutions();
    job.mutable_train()->set_precision(precision);
    job.mutable_train()->set_loss_scale(1024);
    job.mutable_train()->set_loss_scale_growth(2);
    job.mutable_train()->set_loss_scale_growth_every(2000);
    job.mutable_train()->set_loss_scale_backoff(0.5);
    const auto dataset = make_patterns(83);
    LoopbackWorld fresh(job, *dataset, even_runs(4, 1));
    const Tensors initial = tensors_of(fresh.engine(0));
    const Tensors one = trained(job);
    EXPECT_EQ(one.at("conv2.weight"), initial.at("conv2.weight"));
    EXPECT_NE(one.at("fc1.weight"), initial.at("fc1.weight"));
    EXPECT_EQ(trained(job, 2), one);
  }
}

TEST(Groups, ATiedWeightOfGpt2CanBeFrozen) {
  const auto text = testing::make_text(83, 16);
  wire::JobSpec job = testing::small_gpt2(16);
  add_group(job, "w[tp]e.weight", 1, 1, /*freeze=*/true);
  add_group(job, "h.0.*", 1, 1, /*freeze=*/true);
  std::vector<Tensors> results;
  Tensors initial;
  for (const uint32_t ranks : {1u, 3u}) {
    LoopbackWorld world(job, *text, even_runs(4, ranks), kBucketBytes);
    initial = tensors_of(world.engine(0));
    world.begin_generation(kSteps);
    world.train_to(kSteps);
    results.push_back(tensors_of(world.engine(0)));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0].at("wte.weight"), initial.at("wte.weight"));
  EXPECT_NE(results[0].at("h.1.mlp.c_fc.weight"), initial.at("h.1.mlp.c_fc.weight"));
}

// Embedding and head are one parameter, under the name of the embedding: a factor of 0 stops both.
TEST(Groups, ATiedWeightHasTheFactorOfItsGroup) {
  const auto text = testing::make_text(83, 16);
  wire::JobSpec job = testing::small_gpt2(16);
  const auto trained = [&](const wire::JobSpec& of, uint32_t ranks) {
    LoopbackWorld world(of, *text, even_runs(4, ranks), kBucketBytes);
    world.begin_generation(kSteps);
    world.train_to(kSteps);
    return tensors_of(world.engine(0));
  };
  LoopbackWorld fresh(job, *text, even_runs(4, 1), kBucketBytes);
  const Tensors initial = tensors_of(fresh.engine(0));
  const Tensors plain = trained(job, 1);
  add_group(job, "wte.weight", 0, 0);
  const Tensors held = trained(job, 1);
  EXPECT_NE(plain.at("wte.weight"), initial.at("wte.weight"));
  EXPECT_EQ(held.at("wte.weight"), initial.at("wte.weight"));
  EXPECT_NE(held.at("h.1.mlp.c_fc.weight"), initial.at("h.1.mlp.c_fc.weight"));
  EXPECT_EQ(trained(job, 3), held);
}

TEST(Groups, WhatCannotBeIsRefused) {
  wire::JobSpec nothing = job_of();
  add_group(nothing, "conv1.*", 1, 1);
  add_group(nothing, "fc.wieght", 1, 1);
  EXPECT_THAT(refused(nothing), FailsWith(Code::kUsage, Names("optimizer.groups.1.match")));
  wire::JobSpec all = job_of();
  add_group(all, "*", 1, 1, /*freeze=*/true);
  EXPECT_THAT(refused(all), FailsWith(Code::kUsage, Names("optimizer.groups"), Says("train")));
  wire::JobSpec many = job_of();
  int factor = 2;
  for (const char* name : {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "bn1.*",
                           "bn2.*", "fc1.*", "fc2.weight"})
    add_group(many, name, factor++, 1);
  EXPECT_THAT(refused(many), FailsWith(Code::kUsage, Names("optimizer.groups", "9")));
}

}  // namespace
}  // namespace lockstep
