// The trainer's rungs on a device in plain memory, whose way from the host can be made slow.
#include "worker/torch/doctor/trainer_rungs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "data/doctor/find_limit.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"
#include "tests/unit/engine/plain_recorder.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::PlainModule;
using testing::small_job;

constexpr double kSeconds = 0.01;  // a step in each window, at least

double median_of(const StepTimes& times) {
  std::vector<double> rates;
  for (const double step_s : times.steps_s)
    rates.push_back(static_cast<double>(times.samples) / step_s);
  return doctor::rate_of(rates).median;
}

TEST(TrainerRungs, WithoutAGpuThereIsNoBatchOnIt) {
  const auto dataset = make_patterns(80);
  const auto times = time_trainer(small_job("mlp"), *dataset, kSeconds, nullptr);
  ASSERT_TRUE(times.is_ok()) << times.status().message();
  EXPECT_EQ(times->once.samples, 20U);
  EXPECT_EQ(times->twice.samples, 40U);
  EXPECT_TRUE(times->resident.steps_s.empty());
  EXPECT_EQ(times->resident.why_none, "");
}

TEST(TrainerRungs, OfASlowWayToTheGpuTheCopyIsNamed) {
  const auto dataset = make_patterns(80);
  PlainModule module;
  module.samples_take = std::chrono::milliseconds(20);
  const auto times = time_trainer(small_job("mlp"), *dataset, kSeconds, &module);
  ASSERT_TRUE(times.is_ok()) << times.status().message();
  EXPECT_EQ(times->resident.samples, times->once.samples);
  ASSERT_EQ(times->resident.steps_s.size(), times->once.steps_s.size());
  // Four slots, of which three wait: the first batch of a step is sent ahead.
  EXPECT_GE(*std::min_element(times->once.steps_s.begin(), times->once.steps_s.end()), 0.06);
  doctor::Measurements measured;
  measured.rungs = {
      {doctor::RungKind::kRaw, doctor::rate_of({1e9}), 0, ""},
      {doctor::RungKind::kLoader, doctor::rate_of({1e9}), 0, ""},
      {doctor::RungKind::kTrainer, doctor::rate_of({median_of(times->once)}), 0, ""},
      {doctor::RungKind::kResident, doctor::rate_of({median_of(times->resident)}), 0, ""}};
  EXPECT_EQ(doctor::decide(measured).fault, doctor::Fault::kCopy);
}

// A step has one slot. Each window without length has one step.
TEST(TrainerRungs, NoWindowHasTheRecordingOfAGraph) {
  const auto dataset = make_patterns(80);
  wire::JobSpec job = small_job("mlp");
  job.mutable_train()->set_graph("on");
  job.mutable_train()->set_slots(1);
  PlainModule module;
  const auto& recorder = testing::add_recorder(module);
  const auto times = time_trainer(job, *dataset, /*seconds=*/0, &module);
  ASSERT_TRUE(times.is_ok()) << times.status().message();
  ASSERT_FALSE(times->twice.steps_s.empty());
  ASSERT_FALSE(times->resident.steps_s.empty());
  EXPECT_EQ(recorder.recordings, 3u);
  // The step that records replays what it has recorded.
  EXPECT_EQ(recorder.replays, 3 * (times->once.steps_s.size() + 2));
}

// Six steps of four slots.
void train_with_kept_inputs(uint64_t global_batch, PlainModule& module) {
  const auto dataset = make_patterns(static_cast<uint32_t>(global_batch));
  wire::JobSpec job = small_job("mlp");
  job.mutable_train()->set_global_batch(global_batch);
  LoopbackWorld world(job, *dataset, even_runs(4, 1), 0, nullptr, {&module});
  world.keeps_inputs = true;
  world.begin_generation(6);
  world.train_to(6);
}

TEST(KeptInputs, AreSentOnceToEachStageAndEverySlotsValuesAlways) {
  PlainModule module;
  train_with_kept_inputs(20, module);
  EXPECT_EQ(module.sample_copies, 2U);
  EXPECT_EQ(module.value_copies, 22U);
}

TEST(KeptInputs, OfAnotherSizeAreSentAnew) {
  PlainModule module;
  train_with_kept_inputs(21, module);  // of 5, 5, 5 and 6: one stage has either 5 or 6
  EXPECT_EQ(module.sample_copies, 1U + 2U * 6U);
  EXPECT_EQ(module.value_copies, 24U - 13U);
}

}  // namespace
}  // namespace lockstep
