// Slots that are left out by policy give the same bits for any number of ranks, and the bits of a
// run that never had their samples.
#include <gtest/gtest.h>

#include <utility>

#include "comm/run/job/job.pb.h"
#include "comm/run/plan/epoch_order.h"
#include "comm/run/plan/step_plan.h"
#include "data/dataset/dataset.h"
#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::small_job;
using testing::TrainResult;

constexpr Step kSteps = 8;  // two epochs of 63 samples, in whose short steps slot 0 is empty

wire::JobSpec full_job() {
  wire::JobSpec job = small_job("cnn");
  job.mutable_model()->set_dropout(0.25);
  job.mutable_model()->set_batch_norm(true);
  return job;
}

SkipSet some_skips() {
  SkipSet skips;
  skips.add(1, 0, 1);
  skips.add(2, 1, 3);
  skips.add(3, 2, 4);  // of the short step
  skips.add(5, 0, 4);  // a whole step
  return skips;
}

TrainResult train(const wire::JobSpec& job, const data::Dataset& dataset,
                  const std::vector<SlotRun>& runs, const SkipSet& skips,
                  uint64_t bucket_bytes = 0) {
  return testing::train(job, dataset, runs, kSteps, bucket_bytes, skips);
}

TEST(SkippedSlots, GiveTheSameBitsForAnyNumberOfRanksAndAnyBuckets) {
  const auto dataset = make_patterns(63);
  const TrainResult one = train(full_job(), *dataset, even_runs(4, 1), some_skips());
  for (const uint32_t ranks : {2u, 3u, 4u}) {
    SCOPED_TRACE(ranks);
    const TrainResult other = train(full_job(), *dataset, even_runs(4, ranks), some_skips());
    EXPECT_EQ(other.common_hashes, one.common_hashes);
    EXPECT_TRUE(other.state == one.state);
  }
  const TrainResult bucketed = train(full_job(), *dataset, {{0, 1}, {1, 4}}, some_skips(), 4096);
  EXPECT_EQ(bucketed.common_hashes, one.common_hashes);
  EXPECT_TRUE(bucketed.state == one.state);
  const TrainResult all = train(full_job(), *dataset, even_runs(4, 1), {});
  EXPECT_EQ(all.losses[0], one.losses[0]);
  EXPECT_NE(all.losses[1], one.losses[1]);
  EXPECT_FALSE(all.state == one.state);
}

// Makes the data of a run without slot 3's samples: the other slots have the same samples.
std::unique_ptr<data::Dataset> without_the_last_slot(const data::Dataset& whole, uint64_t seed,
                                                     uint64_t samples) {
  data::DatasetFacts facts = whole.facts();
  facts.samples = samples;
  facts.fingerprint = "without the last slot";
  const EpochOrder order({seed, whole.fingerprint(), whole.samples()}, 0);
  const EpochOrder own({seed, facts.fingerprint, samples}, 0);
  std::vector<uint64_t> sample_of(samples);
  for (uint64_t position = 0; position < samples; ++position)
    sample_of[own.at(position)] = order.at(position);
  return whole.view(std::move(facts), [sample_of](uint64_t i) { return sample_of[i]; });
}

TEST(SkippedSlots, LeaveTheStateOfARunThatNeverHadTheirSamples) {
  const auto dataset = make_patterns(60);
  const wire::JobSpec job = full_job();  // 20 samples in 4 slots of 5
  LoopbackWorld world(job, *dataset, even_runs(4, 2));
  world.skips.add(0, 3, 4);
  world.begin_generation(kSteps);
  const TrainResult skipped = world.train_to(1);

  const auto rest = without_the_last_slot(*dataset, job.seed(), 15);
  wire::JobSpec smaller = job;
  smaller.mutable_train()->set_global_batch(15);
  smaller.mutable_train()->set_slots(3);  // the tree over three is that over four without the last
  LoopbackWorld reference(smaller, *rest, even_runs(3, 1));
  reference.begin_generation(kSteps);
  const TrainResult expected = reference.train_to(1);
  EXPECT_EQ(skipped.losses, expected.losses);
  EXPECT_TRUE(skipped.state == expected.state);
}

TEST(SkippedSlots, AWholeStepCountsAndChangesNothingElse) {
  const auto dataset = make_patterns(63);
  LoopbackWorld world(full_job(), *dataset, even_runs(4, 3));
  world.skips.add(2, 0, 4);
  world.skips.add(3, 1, 4);  // the short step, in which slot 0 has nothing
  world.wants_switch = [](uint32_t) { return true; };
  world.begin_generation(kSteps);
  const TrainResult before = world.train_to(2);
  for (const Step step : {2u, 3u}) {
    for (const auto& outcome : world.step_all()) {
      ASSERT_TRUE(outcome.is_ok()) << outcome.status().message();
      EXPECT_EQ(outcome->record.step(), step);
      EXPECT_EQ(outcome->record.samples(), 0u);
      EXPECT_EQ(outcome->record.loss(), 0.0);
      EXPECT_EQ(outcome->record.slots_size(), 0);
      EXPECT_FALSE(outcome->record.skipped());
      EXPECT_FALSE(outcome->all_want_switch);
      EXPECT_EQ(outcome->epoch_ended, step == 3);
    }
  }
  EXPECT_EQ(world.engine(0).applied_steps(), 4u);
  EXPECT_TRUE(testing::state_bytes(world.engine(0), true) == before.state);
  for (const auto& outcome : world.step_all()) {
    ASSERT_TRUE(outcome.is_ok()) << outcome.status().message();
    EXPECT_TRUE(outcome->all_want_switch);
  }
}

TEST(SkippedSlots, TheRecordCountsAndNamesOnlyTheOthers) {
  const auto dataset = make_patterns(60);
  LoopbackWorld world(small_job("mlp"), *dataset, even_runs(4, 2));
  world.skips.add(0, 1, 3);
  world.begin_generation(kSteps);
  LoopbackWorld whole(small_job("mlp"), *dataset, even_runs(4, 2));
  whole.begin_generation(kSteps);
  const auto got = world.step_all();
  const auto all = whole.step_all();
  const wire::StepRecord& record = got[1]->record;
  EXPECT_EQ(record.samples(), 10u);
  ASSERT_EQ(record.slots_size(), 2);
  EXPECT_EQ(record.slots(0).SerializeAsString(), all[0]->record.slots(0).SerializeAsString());
  EXPECT_EQ(record.slots(1).SerializeAsString(), all[0]->record.slots(3).SerializeAsString());
}

TEST(SkippedSlots, AClosedGateKeepsAWholeStepFromCounting) {
  const auto dataset = make_patterns(60);
  LoopbackWorld world(small_job("mlp"), *dataset, even_runs(4, 1));
  world.skips.add(0, 0, 4);
  world.begin_generation(kSteps, [](uint32_t) {
    StepGate closed;
    closed.try_enter = [] { return false; };
    return closed;
  });
  const auto outcomes = world.step_all();
  EXPECT_EQ(outcomes[0].status().code(), Code::kAborted);
  EXPECT_EQ(world.engine(0).applied_steps(), 0u);
}

// The slot whose turn it is to be computed again may be one that is left out.
TEST(SkippedSlots, RanksThatCheckEachOtherDoNotTouchThem) {
  const auto dataset = make_patterns(63);
  wire::JobSpec job = full_job();
  job.mutable_train()->set_check_every(1);
  job.mutable_comm()->set_numerics("exact");
  LoopbackWorld world(job, *dataset, even_runs(4, 4));
  world.skips.add(1, 1, 2);  // after step s + 1 it is slot s % 4
  world.begin_generation(kSteps);
  for (Step step = 0; step < kSteps; ++step) {
    const auto outcomes = world.step_all();
    for (const auto& outcome : outcomes) {
      ASSERT_TRUE(outcome.is_ok()) << outcome.status().message();
      ASSERT_TRUE(outcome->check.has_value());
      EXPECT_EQ(outcome->check->weights_hash(), outcomes[0]->check->weights_hash());
      if (step == 1) {
        EXPECT_FALSE(outcome->check->has_gradient());
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
