// Training on a GPU: the same bits for any number of workers that share it, after a restore and in
// the generation after, and the CPU's results to rounding. Skipped, with the reason, where there is
// no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/gpu/gpu_world.h"
#include "tests/support/state_of.h"

namespace lockstep {
namespace {

using testing::data_of;
using testing::Devices;
using testing::even_runs;
using testing::job_of;
using testing::kBucketBytes;
using testing::kSteps;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::OnGpu;
using testing::TrainResult;

TrainResult train(const wire::JobSpec& job, const data::Dataset& dataset, uint32_t ranks,
                  const std::vector<DeviceModule*>& modules) {
  LoopbackWorld world(job, dataset, even_runs(4, ranks), kBucketBytes, nullptr, modules);
  world.begin_generation(kSteps);
  return world.train_to(kSteps);
}

class Trains : public OnGpu, public ::testing::WithParamInterface<const char*> {};

TEST_P(Trains, ToTheSameBitsForAnyNumberOfWorkersOnOneGpu) {
  const wire::JobSpec job = job_of(GetParam());
  const auto dataset = data_of(GetParam());
  const TrainResult one = train(job, *dataset, 1, Devices(1).modules);
  for (const double loss : one.losses) EXPECT_TRUE(std::isfinite(loss));
  for (const uint32_t ranks : {2u, 4u}) {
    SCOPED_TRACE(ranks);
    const Devices devices(ranks);
    const TrainResult more = train(job, *dataset, ranks, devices.modules);
    EXPECT_EQ(more.losses, one.losses);
    EXPECT_TRUE(more.state == one.state);
  }
}

TEST_P(Trains, AsTheCpuDoesToRounding) {
  const wire::JobSpec job = job_of(GetParam());
  const auto dataset = data_of(GetParam());
  const TrainResult cpu = train(job, *dataset, 2, {});
  const Devices devices(2);
  const TrainResult gpu = train(job, *dataset, 2, devices.modules);
  ASSERT_EQ(gpu.losses.size(), cpu.losses.size());
  for (size_t step = 0; step < cpu.losses.size(); ++step)
    EXPECT_NEAR(gpu.losses[step], cpu.losses[step], 2e-3 * cpu.losses[step]) << step;
}

TEST_P(Trains, ToTheSameBitsThroughARestoreAndANewGeneration) {
  const wire::JobSpec job = job_of(GetParam());
  const auto dataset = data_of(GetParam());
  const Devices devices(2);
  const TrainResult expected = train(job, *dataset, 2, devices.modules);
  LoopbackWorld world(job, *dataset, even_runs(4, 2), kBucketBytes, nullptr, devices.modules);
  world.begin_generation(kSteps);
  world.train_to(3);
  const std::string checkpoint = testing::state_bytes(world.engine(0), true);
  world.train_to(7);
  for (uint32_t r = 0; r < 2; ++r) {
    const char* from = checkpoint.data();
    const std::vector<StateTensor> state = testing::state_of(world.engine(r));
    for (const StateTensor& tensor : state) {
      std::memcpy(tensor.data, from, tensor.bytes);
      from += tensor.bytes;
    }
    ASSERT_TRUE(world.engine(r).install_state(state, 3).is_ok());
  }
  world.begin_generation(kSteps);
  EXPECT_TRUE(world.train_to(kSteps).state == expected.state);
}

INSTANTIATE_TEST_SUITE_P(Models, Trains, ::testing::Values("mlp", "cnn", "resnet18", "gpt2"),
                         [](const auto& c) { return std::string(c.param); });

class InShortTypes : public OnGpu, public ::testing::WithParamInterface<const char*> {};

TEST_P(InShortTypes, TrainsToTheSameBitsAndNearTheCpu) {
  const auto dataset = data_of("gpt2");
  wire::JobSpec job = job_of("gpt2");
  job.mutable_train()->set_precision(GetParam());
  job.mutable_train()->set_loss_scale(1024);
  job.mutable_train()->set_loss_scale_growth(2);
  job.mutable_train()->set_loss_scale_backoff(0.5);
  job.mutable_train()->set_loss_scale_growth_every(4);
  const TrainResult cpu = train(job, *dataset, 2, {});
  const Devices devices(4);
  const TrainResult one = train(job, *dataset, 1, devices.modules);
  const TrainResult four = train(job, *dataset, 4, devices.modules);
  EXPECT_TRUE(four.state == one.state);
  for (size_t step = 0; step < cpu.losses.size(); ++step)
    EXPECT_NEAR(one.losses[step], cpu.losses[step], 2e-2 * cpu.losses[step]) << step;
}

INSTANTIATE_TEST_SUITE_P(Types, InShortTypes, ::testing::Values("bf16", "fp16"),
                         [](const auto& c) { return std::string(c.param); });

TEST_F(OnGpu, ThePeakOfItsMemoryIsTold) {
  const auto dataset = make_patterns(83);
  const Devices devices(1);
  train(job_of("cnn"), *dataset, 1, devices.modules);
  EXPECT_GT(devices.own[0]->allocated_bytes(), 0u);
  const auto peak = peak_device_bytes(*devices.own[0]);
  ASSERT_TRUE(peak.is_ok()) << peak.status().message();
  EXPECT_GT(*peak, devices.own[0]->allocated_bytes());
}

}  // namespace
}  // namespace lockstep
