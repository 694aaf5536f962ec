// Tests what travels between a device and the host, when, and through which memory of the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::PlainModule;
using testing::small_job;

constexpr uint64_t kBucketBytes = 4096;

// The modules outlive the world.
struct Modules {
  explicit Modules(uint32_t ranks) : own(ranks) {
    for (auto& module : own) {
      module = std::make_unique<PlainModule>();
      modules.push_back(module.get());
    }
  }
  std::vector<std::unique_ptr<PlainModule>> own;
  std::vector<DeviceModule*> modules;
};

wire::JobSpec clipped_job() {
  wire::JobSpec job = small_job("cnn");
  job.mutable_model()->set_dropout(0.25);
  job.mutable_model()->set_batch_norm(true);
  job.mutable_optimizer()->set_clip_norm(0.5);
  return job;
}

// Returns the largest copy that any of the ranks makes in a step.
uint64_t largest_copy_of_a_step(uint32_t ranks, bool connects_devices) {
  const auto dataset = make_patterns(80);
  Modules devices(ranks);
  LoopbackWorld world(clipped_job(), *dataset, even_runs(4, ranks), kBucketBytes, nullptr,
                      devices.modules);
  world.connects_devices = connects_devices;
  world.begin_generation(2);
  for (const auto& module : devices.own) module->largest_copy = 0;
  for (const auto& outcome : world.step_all())
    EXPECT_TRUE(outcome.is_ok()) << outcome.status().message();
  uint64_t largest = 0;
  for (const auto& module : devices.own) largest = std::max(largest, module->largest_copy);
  return largest;
}

TEST(DeviceTraffic, OfOneThatIsAloneOrConnectedHasNoGradients) {
  constexpr uint64_t kBytesBesides = 256;  // losses by row, the verdict, the control section
  EXPECT_GE(largest_copy_of_a_step(2, false), kBucketBytes);
  EXPECT_LE(largest_copy_of_a_step(2, true), kBytesBesides);
  EXPECT_LE(largest_copy_of_a_step(1, false), kBytesBesides);
}

TEST(DeviceTraffic, OfOneThatIsAloneOrConnectedPinsNothingOfTheHosts) {
  const auto dataset = make_patterns(80);
  for (const uint32_t ranks : {1u, 2u}) {
    Modules devices(ranks);
    LoopbackWorld world(small_job("mlp"), *dataset, even_runs(4, ranks), 0, nullptr,
                        devices.modules);
    world.connects_devices = ranks > 1;
    world.begin_generation(2);
    world.train_to(2);
    for (const auto& module : devices.own) EXPECT_EQ(module->pinned(), 0u);
  }
}

// The loader may be late for a step, but not for all.
TEST(DeviceTraffic, HasTheNextStepsFirstBatchBeforeAStepIsApplied) {
  const auto dataset = make_patterns(80);
  constexpr Step kMost = 200;
  Modules devices(1);
  LoopbackWorld world(small_job("mlp"), *dataset, even_runs(4, 1), 0, nullptr, devices.modules);
  world.begin_generation(kMost);
  bool was_ahead = false;
  for (Step step = 1; step < kMost && !was_ahead; ++step) {
    world.train_to(step);
    was_ahead = devices.own[0]->batches_before_apply > 4 * step;
  }
  EXPECT_TRUE(was_ahead);
}

TEST(DeviceTraffic, LeavesNoMemoryOfTheHostPinned) {
  const auto dataset = make_patterns(80);
  Modules devices(2);
  {
    LoopbackWorld world(small_job("mlp"), *dataset, even_runs(4, 2), 0, nullptr, devices.modules);
    world.begin_generation(2);
    world.train_to(2);
    EXPECT_GT(devices.own[0]->pinned(), 0u);
  }
  for (const auto& module : devices.own) EXPECT_EQ(module->pinned(), 0u);
}

TEST(DeviceTraffic, OfChecksAndCheckpointsGoesThroughPinnedMemory) {
  constexpr uint64_t kBytesBesides = 512;  // whether blocks of the sums are finite
  const auto dataset = make_patterns(80);
  wire::JobSpec job = clipped_job();
  job.mutable_train()->set_check_every(2);
  job.mutable_comm()->set_numerics("exact");
  Modules devices(2);
  LoopbackWorld world(job, *dataset, even_runs(4, 2), kBucketBytes, nullptr, devices.modules);
  world.connects_devices = true;
  world.begin_generation(4);
  for (Step step = 0; step < 4; ++step) {
    for (const auto& outcome : world.step_all()) {
      ASSERT_TRUE(outcome.is_ok()) << outcome.status().message();
      EXPECT_EQ(outcome->check.has_value(), step == 0 || step % 2 == 1);
    }
  }
  EXPECT_FALSE(testing::state_bytes(world.engine(0), true).empty());
  for (const auto& module : devices.own) EXPECT_LE(module->largest_slow_copy, kBytesBesides);
}

}  // namespace
}  // namespace lockstep
