// data.tune in the engine: said once, whatever generations there are, and no bit is another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/limits.h"
#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using testing::even_runs;
using ::testing::IsEmpty;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::small_job;
using ::testing::StartsWith;

constexpr Step kMany = 1'000'000;
constexpr Step kAtATime = 50;

TEST(EngineTuning, SaysOnceWhatItCameToAndChangesNothing) {
  const auto dataset = make_patterns(83);
  wire::JobSpec job = small_job("cnn");
  job.mutable_data()->set_tune("auto");
  LoopbackWorld tuned(job, *dataset, even_runs(4, 1));
  tuned.begin_generation(kMany);
  Step steps = 0;
  const Step most = limits::kTuningWindows * (limits::kTuningWindowBatches + 200) / 4;
  while (tuned.notes.empty() && steps < most) {
    steps += kAtATime;
    tuned.train_to(steps);
  }
  EXPECT_THAT(tuned.notes, ElementsAre(StartsWith("data.tune: ")));
  tuned.begin_generation(kMany);
  steps += kAtATime;
  const auto state = tuned.train_to(steps).state;
  EXPECT_EQ(tuned.notes.size(), 1U);

  job.mutable_data()->set_tune("off");
  LoopbackWorld plain(job, *dataset, even_runs(4, 1));
  plain.begin_generation(kMany);
  EXPECT_TRUE(plain.train_to(steps).state == state);
  EXPECT_THAT(plain.notes, IsEmpty());
}

// Such a run has the field empty, and nothing measures its loader.
TEST(EngineTuning, ARunFromBeforeItWasThereIsNotTuned) {
  const auto dataset = make_patterns(83);
  LoopbackWorld world(small_job("cnn"), *dataset, even_runs(4, 1));
  world.begin_generation(kMany);
  world.train_to(600);
  EXPECT_THAT(world.notes, IsEmpty());
}

}  // namespace
}  // namespace lockstep
