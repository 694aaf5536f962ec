// Trial steps in a real engine: they leave no trace, and what they find becomes the global batch.
#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/byte_units.h"
#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"
#include "worker/engine/largest_slot.h"
#include "worker/engine/memory_meter.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_engine;
using testing::make_patterns;
using testing::small_job;

// Has memory for so many trials.
class PlantedMeter final : public MemoryMeter {
 public:
  explicit PlantedMeter(uint64_t enough_for) : enough_for_(enough_for) {}
  Result<uint64_t> begin() override { return uint64_t{1} << 40; }
  Result<uint64_t> taken() override { return ++trials_ <= enough_for_ ? 1 : uint64_t{1} << 40; }
  void settle() override {}
  uint64_t trials() const { return trials_; }

 private:
  const uint64_t enough_for_;
  uint64_t trials_ = 0;
};

wire::JobSpec noisy_job() {
  wire::JobSpec job = small_job("cnn");
  job.mutable_model()->set_dropout(0.5);
  job.mutable_model()->set_batch_norm(true);
  return job;
}

wire::JobSpec open(wire::JobSpec job) {
  job.mutable_train()->set_global_batch(0);
  return job;
}

TEST(TrialStep, LeavesParametersMomentsStatisticsAndGeneratorBitwiseAsTheyWere) {
  const auto dataset = make_patterns(200);
  for (const bool has_device : {false, true}) {
    testing::PlainModule module;
    auto engine = make_engine(open(noisy_job()), *dataset, nullptr, has_device ? &module : nullptr);
    ASSERT_TRUE(engine.is_ok()) << engine.status().message();
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    generator.set_current_seed(77);
    const at::Tensor numbers = generator.get_state();
    const std::string state = testing::state_bytes(**engine, true);
    PlantedMeter meter(100);
    const auto found = (*engine)->largest_slot(meter, 1);
    ASSERT_TRUE(found.is_ok()) << found.status().message();
    EXPECT_EQ(*found, 32u);  // 200 samples in 4 slots
    EXPECT_GT(meter.trials(), 3u);
    EXPECT_TRUE(testing::state_bytes(**engine, true) == state);
    EXPECT_EQ((*engine)->applied_steps(), 0u);
    EXPECT_TRUE(at::equal(generator.get_state(), numbers));
  }
}

TEST(TrialStep, AnEngineThatHasTriedTrainsToTheBitsOfOneThatHasNot) {
  const auto dataset = make_patterns(200);
  wire::JobSpec job = noisy_job();
  job.mutable_train()->set_global_batch(32);
  const auto plain = testing::train(job, *dataset, even_runs(4, 2), 12);

  LoopbackWorld world(open(job), *dataset, even_runs(4, 2));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    PlantedMeter meter(rank + 2);  // one rank has more room
    const auto found = world.engine(rank).largest_slot(meter, 1);
    ASSERT_TRUE(found.is_ok()) << found.status().message();
    EXPECT_EQ(*found, rank == 0 ? 2u : 4u);
    ASSERT_TRUE(world.engine(rank).set_global_batch(32).is_ok());
  }
  world.begin_generation(12);
  const auto tried = world.train_to(12);
  EXPECT_EQ(tried.losses, plain.losses);
  EXPECT_TRUE(tried.state == plain.state);
}

// Lockstep's own memory runs out, not LibTorch's. A larger trial frees what a smaller one has
// outgrown.
TEST(TrialStep, ASlotForWhichTheDeviceHasNoMemoryDoesNotFit) {
  const auto dataset = make_patterns(400);
  constexpr uint64_t kSample = 12 * 12 + sizeof(int64_t);  // bytes
  for (const uint64_t fits : {8, 16}) {
    testing::PlainModule module;
    auto engine = make_engine(open(small_job("mlp")), *dataset, nullptr, &module);
    ASSERT_TRUE(engine.is_ok()) << engine.status().message();
    // A stage on the device and one on the host, twice; losses and the table are small.
    module.bytes_left = 4 * fits * kSample + fits * kSample;
    PlantedMeter meter(100);
    const auto found = (*engine)->largest_slot(meter, 1);
    ASSERT_TRUE(found.is_ok()) << found.status().message();
    EXPECT_EQ(*found, fits);
    ASSERT_TRUE((*engine)->set_global_batch(4 * fits).is_ok());
  }
}

TEST(TrialStep, ADeviceWithoutMemoryForTheSmallestSlotIsRefused) {
  const auto dataset = make_patterns(200);
  testing::PlainModule module;
  auto engine = make_engine(open(small_job("mlp")), *dataset, nullptr, &module);
  ASSERT_TRUE(engine.is_ok()) << engine.status().message();
  module.bytes_left = 0;
  PlantedMeter meter(100);
  EXPECT_THAT((*engine)->largest_slot(meter, 1).status(),
              FailsWith(Code::kConfig, Names("train.global_batch"), Advises("smaller model")));
}

// Has so much free memory, of which steps take nearly nothing.
class FreeMeter final : public MemoryMeter {
 public:
  explicit FreeMeter(uint64_t bytes) : bytes_(bytes) {}
  Result<uint64_t> begin() override { return bytes_; }
  Result<uint64_t> taken() override { return uint64_t{1}; }
  void settle() override {}

 private:
  const uint64_t bytes_;
};

// Measures to 4 MiB what is kept free besides steps: this small model itself takes less.
TEST(TrialStep, WhereNcclMaySumRoomIsLeftForItsBuffersAndStages) {
  constexpr uint32_t kWorkers = 4;
  constexpr uint32_t kWorkersHere = 3;
  const auto dataset = make_patterns(200);
  const auto fits = [&](const std::string& backend, double bucket_mb, uint64_t usable) {
    wire::JobSpec job = open(small_job("mlp"));
    job.mutable_comm()->set_backend(backend);
    job.mutable_comm()->set_bucket_mb(bucket_mb);
    job.mutable_cluster()->set_workers(kWorkers);
    testing::PlainModule module;
    auto engine = make_engine(job, *dataset, nullptr, &module);
    EXPECT_TRUE(engine.is_ok()) << engine.status().message();
    FreeMeter meter(usable / limits::kAutoMemoryPercent * 100);
    return (*engine)->largest_slot(meter, kWorkersHere).is_ok();
  };
  EXPECT_TRUE(fits("host", 0, 4 * kMib));
  for (const std::string backend : {"nccl", "auto"}) {
    for (const uint64_t bucket_mb : {0u, 8u}) {
      const uint64_t kept = nccl_bytes({kWorkers, kWorkersHere, /*is_exact=*/true}, 4,
                                       (bucket_mb == 0 ? 32 : bucket_mb) * kMib);
      EXPECT_FALSE(fits(backend, static_cast<double>(bucket_mb), kept)) << backend;
      EXPECT_TRUE(fits(backend, static_cast<double>(bucket_mb), kept + 4 * kMib)) << backend;
    }
  }
}

TEST(TrialStep, ThisMachinesOwnMemoryHoldsASmallStep) {
  const auto dataset = make_patterns(200);
  auto engine = make_engine(open(small_job("mlp")), *dataset);
  ASSERT_TRUE(engine.is_ok());
  const auto meter = make_host_meter(1);
  const auto found = (*engine)->largest_slot(*meter, 1);
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_EQ(*found, 32u);
}

TEST(TrialStep, ABatchThatTheModelCannotTakeIsRefusedWhenItIsSet) {
  const auto dataset = make_patterns(201);  // the last step of 200 has one sample
  wire::JobSpec job = small_job("mlp");
  job.mutable_model()->set_batch_norm(true);
  auto engine = make_engine(open(job), *dataset);
  ASSERT_TRUE(engine.is_ok()) << engine.status().message();
  EXPECT_EQ((*engine)->set_global_batch(200).code(), Code::kConfig);
}

}  // namespace
}  // namespace lockstep
