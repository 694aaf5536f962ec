#include "worker/engine/self_check.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

wire::JobSpec job_with(uint64_t every, const char* numerics = "exact") {
  wire::JobSpec job;
  job.mutable_train()->set_check_every(every);
  job.mutable_comm()->set_numerics(numerics);
  return job;
}

const std::vector<SlotRun> kTwo = {{0, 3}, {3, 4}};

std::optional<CheckPlan> plan_check(const wire::JobSpec& job, Step step,
                                    std::span<const SlotRun> slot_runs, uint32_t buckets) {
  return lockstep::plan_check(job, {}, step, slot_runs, buckets);
}

TEST(SelfCheck, IsDueInTheFirstStepsAndInTheStepThatMakesAMultiple) {
  EXPECT_TRUE(plan_check(job_with(5), 0, kTwo, 1).has_value());
  EXPECT_FALSE(plan_check(job_with(5), 2, kTwo, 1).has_value());
  EXPECT_TRUE(plan_check(job_with(5), 4, kTwo, 1).has_value());
  EXPECT_FALSE(plan_check(job_with(0), 0, kTwo, 1).has_value());
}

TEST(SelfCheck, IsDueWhereTheRunMayEnd) {
  const PossibleEnds ends{.evals = {.has_data = true, .steps_per_epoch = 7}, .last = 13};
  EXPECT_TRUE(lockstep::plan_check(job_with(100), ends, 12, kTwo, 1).has_value());
  EXPECT_FALSE(lockstep::plan_check(job_with(100), ends, 6, kTwo, 1).has_value());
  EXPECT_FALSE(lockstep::plan_check(job_with(0), ends, 12, kTwo, 1).has_value());
  EXPECT_FALSE(lockstep::plan_check(job_with(100, "fast"), ends, 12, kTwo, 1).has_value());
}

TEST(SelfCheck, NeedsTheSameBitsAndIsARankAlonesOwn) {
  EXPECT_FALSE(plan_check(job_with(1, "fast"), 0, kTwo, 1).has_value());
  EXPECT_EQ(plan_check(job_with(1), 0, std::vector<SlotRun>{{0, 4}}, 1)->slot_owner, 0u);
}

TEST(SelfCheck, ComesToEverySlotAndToEveryRanksSliceOfEveryBucket) {
  std::set<uint32_t> slots;
  std::set<std::pair<uint32_t, uint32_t>> sums;
  for (Step step = 0; step < 8; ++step) {
    const CheckPlan plan = *plan_check(job_with(1), step, kTwo, 2);
    slots.insert(plan.slot);
    sums.insert({plan.bucket, plan.sum_owner});
    EXPECT_EQ(plan.slot_owner, plan.slot < 3 ? 0u : 1u);
  }
  EXPECT_EQ(slots.size(), 4u);
  EXPECT_EQ(sums.size(), 4u);
}

TEST(SelfCheck, ARankWithoutSlotsOwnsNoSlot) {
  const std::vector<SlotRun> runs = {{0, 1}, {1, 1}, {1, 2}};
  EXPECT_EQ(plan_check(job_with(1), 1, runs, 1)->slot_owner, 2u);
}

TEST(SelfCheck, OneBitOfAGradientChangesTheHashAndPaddingDoesNot) {
  FlatLayout layout;
  layout.parameters = {{16, 3}, {0, 5}};
  std::vector<float> region(32, 1.5F);
  const uint64_t hash = hash_gradients(layout, region.data());
  region[7] = 0.0F;
  EXPECT_EQ(hash_gradients(layout, region.data()), hash);
  reinterpret_cast<uint32_t&>(region[18]) ^= 1;
  EXPECT_NE(hash_gradients(layout, region.data()), hash);
}

}  // namespace
}  // namespace lockstep
