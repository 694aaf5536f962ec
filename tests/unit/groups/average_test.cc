// Through the engine, train.ema keeps the weights' average next to them in state and evaluation.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"
#include "tests/unit/groups/float_tensors.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::floats_of;
using testing::FloatTensors;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::PlainModule;
using testing::small_job;

constexpr Step kAveragedSteps = 6;
constexpr uint64_t kAveragedBucket = 4096;
constexpr double kDecay = 0.9;
constexpr char kOf[] = "ema.";

wire::JobSpec averaged_job() {
  wire::JobSpec job = small_job("cnn");
  job.mutable_model()->set_batch_norm(true);
  job.mutable_train()->set_ema(kDecay);
  return job;
}

TEST(Average, FollowsTheWeightsOfEveryStepFromTheFirstOnes) {
  const auto dataset = make_patterns(83);
  LoopbackWorld world(averaged_job(), *dataset, even_runs(4, 2), kAveragedBucket);
  FloatTensors expected = floats_of(world.engine(0));
  for (const auto& [name, values] : floats_of(world.engine(0)))
    if (name.starts_with(kOf)) {
      EXPECT_EQ(values.values, expected.at(name.substr(4)).values) << name;
    }
  world.begin_generation(kAveragedSteps);
  for (Step step = 1; step <= kAveragedSteps; ++step) {
    world.train_to(step);
    const FloatTensors now = floats_of(world.engine(0));
    uint32_t seen = 0;
    for (auto& [name, tensor] : expected) {
      if (!name.starts_with(kOf)) continue;
      ++seen;
      std::vector<float>& average = tensor.values;
      const std::vector<float>& weights = now.at(name.substr(4)).values;
      for (size_t i = 0; i < average.size(); ++i)
        average[i] += static_cast<float>(1 - kDecay) * (weights[i] - average[i]);
      EXPECT_EQ(now.at(name).values, average) << name << " at step " << step;
    }
    EXPECT_EQ(seen, 12u);  // weight and bias of two convolutions, two norms, two linear layers
  }
}

TEST(Average, ChangesNoWeightAndIsAloneWithTheKey) {
  const auto dataset = make_patterns(83);
  wire::JobSpec plain = averaged_job();
  plain.mutable_train()->clear_ema();
  const auto with = testing::train(averaged_job(), *dataset, even_runs(4, 1), kAveragedSteps);
  const auto without = testing::train(plain, *dataset, even_runs(4, 1), kAveragedSteps);
  EXPECT_EQ(with.weights, without.weights);
  EXPECT_GT(with.state.size(), without.state.size());
}

TEST(Average, AnyNumberOfRanksAndADeviceGiveTheSameBits) {
  const auto dataset = make_patterns(83);
  testing::expect_same_bits(averaged_job(), *dataset, kAveragedSteps);
  PlainModule first;
  PlainModule second;
  LoopbackWorld devices(averaged_job(), *dataset, even_runs(4, 2), kAveragedBucket, nullptr,
                        {&first, &second});
  devices.begin_generation(kAveragedSteps);
  const auto on_devices = devices.train_to(kAveragedSteps);
  EXPECT_EQ(on_devices.state,
            testing::train(averaged_job(), *dataset, even_runs(4, 1), kAveragedSteps).state);
}

TEST(Average, AStepThatOverflowsDoesNotMoveIt) {
  wire::JobSpec job = averaged_job();
  job.mutable_train()->set_precision("fp16");
  job.mutable_train()->set_loss_scale(1e30);  // every gradient overflows
  job.mutable_train()->set_loss_scale_growth(2);
  job.mutable_train()->set_loss_scale_growth_every(2000);
  job.mutable_train()->set_loss_scale_backoff(0.5);
  const auto dataset = make_patterns(83);
  PlainModule module;
  for (const std::vector<DeviceModule*>& modules :
       {std::vector<DeviceModule*>(), std::vector<DeviceModule*>{&module}}) {
    LoopbackWorld world(job, *dataset, even_runs(4, 1), kAveragedBucket, nullptr, modules);
    const std::vector<StateTensor> state = testing::state_of(world.engine(0));
    for (const StateTensor& tensor : state)  // others than the weights
      if (tensor.name.starts_with(kOf)) std::memset(tensor.data, 0, tensor.bytes);
    ASSERT_TRUE(world.engine(0).install_state(state, 0).is_ok());
    world.begin_generation(kAveragedSteps);
    world.train_to(2);
    for (const auto& [name, tensor] : floats_of(world.engine(0))) {
      if (name.starts_with(kOf)) {
        EXPECT_EQ(tensor.zeros(), tensor.values.size()) << name;
      }
    }
  }
}

wire::EvalReport evaluated(const wire::JobSpec& job, uint32_t ranks,
                           const std::vector<DeviceModule*>& modules = {}, Step steps = 4) {
  const auto dataset = make_patterns(83);
  const auto held_out = make_patterns(40);
  LoopbackWorld world(job, *dataset, even_runs(4, ranks), kAveragedBucket, held_out.get(), modules);
  world.begin_generation(kAveragedSteps);
  world.train_to(steps);
  std::vector<Result<wire::EvalReport>> reports = world.evaluate_all();
  for (const auto& report : reports) {
    EXPECT_TRUE(report.is_ok()) << report.status().message();
    EXPECT_EQ(report->SerializeAsString(), reports[0]->SerializeAsString());
  }
  return *reports[0];
}

double metric_of(const wire::EvalReport& report, const std::string& name) {
  for (const wire::Metric& metric : report.metrics())
    if (metric.name() == name) return metric.value();
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

// Where the average equals the weights, their scores are equal, too.
TEST(Average, IsEvaluatedBesideTheWeights) {
  wire::JobSpec job = averaged_job();
  job.mutable_train()->set_eval_batch(16);
  const wire::EvalReport first = evaluated(job, 1, {}, 0);
  EXPECT_EQ(metric_of(first, "ema_loss"), first.loss());
  const wire::EvalReport later = evaluated(job, 1);
  EXPECT_NE(metric_of(later, "ema_loss"), later.loss());
  EXPECT_NE(metric_of(later, "ema_loss"), first.loss());
  EXPECT_GE(metric_of(later, "ema_accuracy"), 0);
  EXPECT_LE(metric_of(later, "ema_accuracy"), 1);
  wire::JobSpec plain = job;
  plain.mutable_train()->clear_ema();
  const wire::EvalReport without = evaluated(plain, 1);
  EXPECT_EQ(without.loss(), later.loss());
  EXPECT_EQ(without.metrics_size(), 0);
}

TEST(Average, IsEvaluatedAlikeOnAnyNumberOfRanksAndOnADevice) {
  wire::JobSpec job = averaged_job();
  job.mutable_train()->set_eval_batch(16);
  const std::string one = evaluated(job, 1).SerializeAsString();
  for (const uint32_t ranks : {2u, 3u, 4u})
    EXPECT_EQ(evaluated(job, ranks).SerializeAsString(), one) << ranks;
  PlainModule first;
  PlainModule second;
  EXPECT_EQ(evaluated(job, 2, {&first, &second}).SerializeAsString(), one);
}

TEST(Average, FrozenParametersHaveNone) {
  wire::JobSpec job = averaged_job();
  wire::OptimizerGroupSpec& group = *job.mutable_optimizer()->add_groups();
  group.set_match("conv*");
  group.set_lr(1);
  group.set_weight_decay(1);
  group.set_freeze(true);
  const auto dataset = make_patterns(83);
  LoopbackWorld world(job, *dataset, even_runs(4, 1), kAveragedBucket);
  world.begin_generation(kAveragedSteps);
  world.train_to(kAveragedSteps);
  const FloatTensors tensors = floats_of(world.engine(0));
  EXPECT_EQ(tensors.count("ema.conv1.weight"), 0u);
  EXPECT_NE(tensors.at("ema.fc1.weight").values, tensors.at("fc1.weight").values);
}

}  // namespace
}  // namespace lockstep
