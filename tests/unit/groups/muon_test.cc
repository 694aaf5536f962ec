// optimizer.name muon through the engine: which parameters are its matrices, and that they keep all
// promises.
#include "worker/optim/muon.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/fails_with.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"
#include "tests/unit/groups/float_tensors.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::FloatTensors;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::PlainModule;
using testing::small_job;

constexpr Step kMuonSteps = 6;
constexpr uint64_t kMuonBucket = 4096;

wire::JobSpec muon_job(wire::JobSpec job) {
  wire::OptimizerSpec& spec = *job.mutable_optimizer();
  spec.set_name("muon");
  spec.set_momentum(0.95);
  spec.set_nesterov(true);
  spec.set_weight_decay(0.1);
  return job;
}

void add_muon_group(wire::JobSpec& job, const std::string& match, double lr, double decay,
                    bool freeze = false) {
  wire::OptimizerGroupSpec& group = *job.mutable_optimizer()->add_groups();
  group.set_match(match);
  group.set_lr(lr);
  group.set_weight_decay(decay);
  group.set_freeze(freeze);
}

FloatTensors after(const wire::JobSpec& job, Step steps) {
  const auto dataset = make_patterns(83);
  LoopbackWorld world(job, *dataset, even_runs(4, 1), kMuonBucket);
  world.begin_generation(kMuonSteps);
  world.train_to(steps);
  return testing::floats_of(world.engine(0));
}

// The names of parameters with this state.
std::set<std::string> with_state(const FloatTensors& tensors, const std::string& state) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(state + ".")) names.insert(name.substr(state.size() + 1));
  return names;
}

TEST(Muon, HasTheMatricesBetweenInputAndOutputLayerAndAdamwTheRest) {
  for (const auto& [model, matrices] : std::map<std::string, std::set<std::string>>{
           {"mlp", {"fc1.weight", "fc2.weight"}}, {"cnn", {"fc1.weight"}}}) {
    SCOPED_TRACE(model);
    const FloatTensors state = after(muon_job(small_job(model)), 0);
    EXPECT_EQ(with_state(state, "momentum_buffer"), matrices);
    const std::set<std::string> others = with_state(state, "exp_avg");
    EXPECT_EQ(with_state(state, "exp_avg_sq"), others);
    EXPECT_TRUE(others.contains(model == "mlp" ? "fc3.weight" : "conv1.weight"));
    for (const std::string& name : matrices) EXPECT_FALSE(others.contains(name)) << name;
  }
}

TEST(Muon, LeavesTheEmbeddingsOfGpt2ToAdamw) {
  const auto text = testing::make_text(30, 16);
  LoopbackWorld world(muon_job(testing::small_gpt2(16)), *text, even_runs(4, 1));
  const FloatTensors state = testing::floats_of(world.engine(0));
  const std::set<std::string> matrices = with_state(state, "momentum_buffer");
  EXPECT_EQ(matrices.size(), 8u);
  EXPECT_TRUE(matrices.contains("h.1.mlp.c_proj.weight"));
  EXPECT_TRUE(with_state(state, "exp_avg_sq").contains("wte.weight"));
  EXPECT_TRUE(with_state(state, "exp_avg_sq").contains("wpe.weight"));
}

wire::JobSpec job_with_all_that_goes_with_it(const std::string& precision) {
  wire::JobSpec job = muon_job(small_job("mlp", precision));
  job.mutable_train()->set_loss_scale(1024);
  job.mutable_train()->set_ema(0.9);
  job.mutable_train()->mutable_prune()->set_sparsity(0.5);
  job.mutable_train()->mutable_prune()->set_to(4);
  job.mutable_optimizer()->set_clip_norm(0.5);
  job.mutable_optimizer()->set_spare_vectors(true);
  job.mutable_schedule()->set_name("cosine");
  add_muon_group(job, "fc1.bias", 1, 1, /*freeze=*/true);
  add_muon_group(job, "fc2.*", 3, 0.5);
  return job;
}

TEST(Muon, AnyNumberOfRanksAndADeviceGiveTheSameBits) {
  const auto dataset = make_patterns(83);
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    const wire::JobSpec job = job_with_all_that_goes_with_it(precision);
    testing::expect_same_bits(job, *dataset, kMuonSteps);
    PlainModule first;
    PlainModule second;
    LoopbackWorld devices(job, *dataset, even_runs(4, 2), kMuonBucket, nullptr, {&first, &second});
    devices.begin_generation(kMuonSteps);
    EXPECT_EQ(devices.train_to(kMuonSteps).state,
              testing::train(job, *dataset, even_runs(4, 1), kMuonSteps).state);
  }
}

TEST(Muon, AStepThatOverflowsChangesNoMatrix) {
  wire::JobSpec job = muon_job(small_job("mlp", "fp16"));
  job.mutable_train()->set_loss_scale(0x1p40);  // beyond what fp16 holds
  const auto dataset = make_patterns(83);
  PlainModule module;
  for (const std::vector<DeviceModule*>& modules :
       {std::vector<DeviceModule*>{}, std::vector<DeviceModule*>{&module}}) {
    LoopbackWorld world(job, *dataset, even_runs(4, 1), kMuonBucket, nullptr, modules);
    const FloatTensors before = testing::floats_of(world.engine(0));
    world.begin_generation(kMuonSteps);
    world.train_to(1);
    for (const auto& [name, tensor] : testing::floats_of(world.engine(0))) {
      if (name != "loss_scale.scale") {
        EXPECT_EQ(tensor.values, before.at(name).values) << name;
      }
    }
  }
}

TEST(Muon, FrozenMatricesStayAndOthersTrainAsWithARateOfZero) {
  wire::JobSpec frozen = muon_job(small_job("mlp"));
  add_muon_group(frozen, "fc1.*", 1, 1, /*freeze=*/true);
  wire::JobSpec still = muon_job(small_job("mlp"));
  add_muon_group(still, "fc1.*", 0, 1);
  const FloatTensors with = after(frozen, kMuonSteps);
  const FloatTensors without = after(still, kMuonSteps);
  for (const auto& [name, tensor] : with) EXPECT_EQ(tensor.values, without.at(name).values) << name;
  EXPECT_EQ(with.count("momentum_buffer.fc1.weight"), 0u);
  EXPECT_EQ(without.count("momentum_buffer.fc1.weight"), 1u);
  const FloatTensors initial = after(frozen, 0);
  EXPECT_EQ(with.at("fc1.weight").values, initial.at("fc1.weight").values);
  EXPECT_NE(with.at("fc2.weight").values, initial.at("fc2.weight").values);
}

TEST(Muon, AGroupWithEverythingHasTheFactorsOfTheWholeJob) {
  wire::JobSpec grouped = muon_job(small_job("mlp"));
  add_muon_group(grouped, "*", 2, 0.5);
  wire::JobSpec plain = muon_job(small_job("mlp"));
  plain.mutable_optimizer()->set_lr(2 * grouped.optimizer().lr());
  plain.mutable_optimizer()->set_weight_decay(0.5 * grouped.optimizer().weight_decay());
  const FloatTensors one = after(grouped, kMuonSteps);
  for (const auto& [name, tensor] : after(plain, kMuonSteps))
    EXPECT_EQ(tensor.values, one.at(name).values) << name;
}

TEST(Muon, TheRateOfAMatrixFollowsFromItsShape) {
  wire::OptimizerSpec spec;
  const MatrixSegment tall{.start = 0, .rows = 400, .columns = 100, .group = 0};
  const MatrixSegment wide{.start = 0, .rows = 100, .columns = 400, .group = 0};
  for (const MatrixSegment& matrix : {tall, wide})
    EXPECT_DOUBLE_EQ(muon_factors(spec, 0.5, {.lr_scale = 2}, matrix).rate, 4.0);  // 0.2 * 20
  spec.set_adjust_lr("original");
  EXPECT_DOUBLE_EQ(muon_factors(spec, 0.5, {.lr_scale = 2}, tall).rate, 2.0);
  EXPECT_DOUBLE_EQ(muon_factors(spec, 0.5, {.lr_scale = 2}, wide).rate, 1.0);
}

// The zeros after the first step stay.
TEST(Muon, AZeroOfAMatrixStaysZeroWhileItIsPruned) {
  wire::JobSpec job = muon_job(small_job("mlp"));
  job.mutable_train()->mutable_prune()->set_sparsity(0.9);
  job.mutable_train()->mutable_prune()->set_to(1);
  const std::vector<float> early = after(job, 1).at("fc1.weight").values;
  const std::vector<float> late = after(job, kMuonSteps).at("fc1.weight").values;
  uint64_t zeros = 0;
  for (size_t i = 0; i < early.size(); ++i) {
    if (early[i] != 0) continue;
    ++zeros;
    EXPECT_EQ(late[i], 0) << i;
  }
  EXPECT_EQ(zeros, static_cast<uint64_t>(0.9 * static_cast<double>(early.size())));
}

TEST(Muon, IsRefusedWhereNoMatrixIsTrained) {
  const auto dataset = make_patterns(40, 32);
  const wire::JobSpec resnet = muon_job(small_job("resnet18"));
  EXPECT_THAT(testing::make_engine(resnet, *dataset).status(),
              FailsWith(Code::kUsage, Names("optimizer.name", "resnet18"), Says("adamw")));
  wire::JobSpec frozen = muon_job(small_job("mlp"));
  add_muon_group(frozen, "fc[12].weight", 1, 1, /*freeze=*/true);
  EXPECT_THAT(testing::make_engine(frozen, *dataset).status(),
              FailsWith(Code::kUsage, Names("optimizer.name", "mlp"), Says("adamw")));
  wire::JobSpec momentum = muon_job(small_job("mlp"));
  momentum.mutable_optimizer()->set_momentum(1);
  EXPECT_THAT(testing::make_engine(momentum, *dataset).status(),
              FailsWith(Code::kUsage, Names("optimizer.momentum")));
}

}  // namespace
}  // namespace lockstep
