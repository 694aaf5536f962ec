// train.prune through the engine: how many weights are zero after which step, and that they stay
// so.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"
#include "tests/unit/groups/float_tensors.h"
#include "worker/optim/prune.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::floats_of;
using testing::FloatTensors;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::PlainModule;
using testing::small_job;

constexpr Step kPrunedSteps = 12;
constexpr uint64_t kPrunedBucket = 4096;

wire::JobSpec pruned_job() {
  wire::JobSpec job = small_job("cnn");
  wire::PruneSpec& prune = *job.mutable_train()->mutable_prune();
  prune.set_sparsity(0.75);
  prune.set_from(2);
  prune.set_to(8);
  prune.set_every(3);  // after 5 and 8 steps
  return job;
}

TEST(Pruning, MatricesAndKernelsGetTheirShareOfZerosWhichStay) {
  const auto dataset = make_patterns(83);
  const wire::JobSpec job = pruned_job();
  LoopbackWorld world(job, *dataset, even_runs(4, 2), kPrunedBucket);
  world.begin_generation(kPrunedSteps);
  FloatTensors before = floats_of(world.engine(0));
  for (Step step = 1; step <= kPrunedSteps; ++step) {
    world.train_to(step);
    FloatTensors now = floats_of(world.engine(0));
    for (const char* name : {"conv1.weight", "conv2.weight", "fc1.weight", "fc2.weight"}) {
      SCOPED_TRACE(std::string(name) + " after step " + std::to_string(step));
      const testing::FloatTensor& of = now.at(name);
      const Step last = step >= 8 ? 8 : step >= 5 ? 5 : 0;
      EXPECT_EQ(of.zeros(),
                static_cast<uint64_t>(std::floor(sparsity_after(job.train().prune(), last) *
                                                 static_cast<double>(of.values.size()))));
      for (size_t i = 0; i < of.values.size(); ++i)
        if (step > 5 && before.at(name).values[i] == 0) {
          EXPECT_EQ(of.values[i], 0) << i;
        }
    }
    EXPECT_LT(now.at("fc1.bias").zeros(), now.at("fc1.bias").values.size());
    before = std::move(now);
  }
  EXPECT_EQ(before.at("fc1.weight").zeros(), before.at("fc1.weight").values.size() * 3 / 4);
}

TEST(Pruning, HappensThoughTheStepIsPassedOver) {
  const auto dataset = make_patterns(83);
  const wire::JobSpec job = pruned_job();
  LoopbackWorld world(job, *dataset, even_runs(4, 1), kPrunedBucket);
  world.skips.add(7, 0, 4);  // the step that ends with 8
  world.begin_generation(kPrunedSteps);
  world.train_to(8);
  const testing::FloatTensor fc1 = floats_of(world.engine(0)).at("fc1.weight");
  EXPECT_EQ(fc1.zeros(), fc1.values.size() * 3 / 4);
}

TEST(Pruning, AZeroOfAVectorMoves) {
  const auto dataset = make_patterns(83);
  wire::JobSpec job = pruned_job();
  job.mutable_train()->mutable_prune()->set_from(0);
  LoopbackWorld world(job, *dataset, even_runs(4, 1), kPrunedBucket);
  const std::vector<StateTensor> state = testing::state_of(world.engine(0));
  for (const StateTensor& tensor : state)
    if (tensor.name == "fc2.bias") std::memset(tensor.data, 0, tensor.bytes);
  ASSERT_TRUE(world.engine(0).install_state(state, 0).is_ok());
  world.begin_generation(kPrunedSteps);
  world.train_to(2);
  EXPECT_EQ(floats_of(world.engine(0)).at("fc2.bias").zeros(), 0u);
}

TEST(Pruning, AnyNumberOfRanksAndADeviceGiveTheSameBits) {
  const auto dataset = make_patterns(83);
  for (const double ema : {0.0, 0.9}) {
    wire::JobSpec job = pruned_job();
    job.mutable_train()->set_ema(ema);
    testing::expect_same_bits(job, *dataset, kPrunedSteps);
    PlainModule first;
    PlainModule second;
    LoopbackWorld devices(job, *dataset, even_runs(4, 2), kPrunedBucket, nullptr,
                          {&first, &second});
    devices.begin_generation(kPrunedSteps);
    const auto on_devices = devices.train_to(kPrunedSteps);
    EXPECT_EQ(on_devices.state, testing::train(job, *dataset, even_runs(4, 1), kPrunedSteps).state);
  }
}

TEST(Pruning, TheAverageHasTheZerosOfTheWeights) {
  const auto dataset = make_patterns(83);
  wire::JobSpec job = pruned_job();
  job.mutable_train()->set_ema(0.9);
  LoopbackWorld world(job, *dataset, even_runs(4, 1), kPrunedBucket);
  world.begin_generation(kPrunedSteps);
  world.train_to(kPrunedSteps);
  const auto tensors = floats_of(world.engine(0));
  const std::vector<float>& weights = tensors.at("fc1.weight").values;
  const std::vector<float>& average = tensors.at("ema.fc1.weight").values;
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i] == 0) {
      EXPECT_EQ(average[i], 0) << i;
    }
}

TEST(Pruning, FrozenParametersStayWhole) {
  const auto dataset = make_patterns(83);
  wire::JobSpec job = pruned_job();
  wire::OptimizerGroupSpec& group = *job.mutable_optimizer()->add_groups();
  group.set_match("conv*");
  group.set_lr(1);
  group.set_weight_decay(1);
  group.set_freeze(true);
  LoopbackWorld world(job, *dataset, even_runs(4, 1), kPrunedBucket);
  world.begin_generation(kPrunedSteps);
  world.train_to(kPrunedSteps);
  const auto tensors = floats_of(world.engine(0));
  EXPECT_EQ(tensors.at("conv2.weight").zeros(), 0u);
  EXPECT_GT(tensors.at("fc1.weight").zeros(), 0u);
}

}  // namespace
}  // namespace lockstep
