#include "comm/run/plan/step_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <vector>

namespace lockstep::data {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

TEST(StepPlan, GivesTheLastStepOfAnEpochWhatIsLeft) {
  const RunShape shape{60'000, 2'857, 4};  // 21 * 2857 = 59,997
  EXPECT_EQ(steps_per_epoch(shape), 22U);
  const StepPlan plan = plan_step(shape, 22 + 21);
  EXPECT_EQ(plan.epoch, 1U);
  EXPECT_EQ(plan.step_in_epoch, 21U);
  EXPECT_EQ(plan.begin, 59'997U);
  EXPECT_EQ(plan.samples, 3U);
  EXPECT_TRUE(plan.last_of_epoch);
  EXPECT_EQ(non_empty_slots(plan, 4), (std::vector<bool>{false, true, true, true}));
}

TEST(StepPlan, StartsTheNextEpochAtItsBeginning) {
  const StepPlan plan = plan_step({10, 4, 2}, 3);
  EXPECT_EQ(plan.epoch, 1U);
  EXPECT_EQ(plan.begin, 0U);
  EXPECT_EQ(plan.samples, 4U);
  EXPECT_FALSE(plan.last_of_epoch);
}

TEST(StepPlan, DoesNotOverflowWithTheLargestNumbers) {
  const uint64_t n = uint64_t{1} << 62;
  const StepPlan plan = plan_step({n, n, 65'536}, 0);
  EXPECT_EQ(slot_positions(plan, 65'535, 65'536).end, n);
  EXPECT_EQ(slot_positions(plan, 32'768, 65'536).begin, n / 2);
  EXPECT_EQ(steps_per_epoch({kMost, 1, 1}), kMost);
  EXPECT_EQ(steps_per_epoch({kMost, kMost, 1}), 1U);
}

TEST(StepPlan, EndsTheRunAtEpochsOrStepsWhicheverComesFirst) {
  const RunShape shape{10, 4, 2};  // 3 steps an epoch
  EXPECT_EQ(total_steps(shape, 5, 0), 15U);
  EXPECT_EQ(total_steps(shape, 5, 7), 7U);
  EXPECT_EQ(total_steps(shape, 5, 99), 15U);
  EXPECT_EQ(total_steps(shape, 0, 99), 99U);
  EXPECT_EQ(total_steps(shape, 0, 0), 0U);
  EXPECT_EQ(total_steps({kMost, 1, 1}, 3, 0), kMost);
}

TEST(StepPlan, StepsOfABatchAreItsTurns) {
  const RunShape shape{10, 4, 2, 3};  // batches of 4, 4 and 2, each in 3 turns
  EXPECT_EQ(steps_per_epoch(shape), 9U);
  for (Step step = 0; step < 27; ++step) {
    const StepPlan plan = plan_step(shape, step);
    const StepPlan batch = plan_step({10, 4, 2}, step / 3);
    EXPECT_EQ(plan.turn, step % 3);
    EXPECT_EQ(plan.begin, batch.begin);
    EXPECT_EQ(plan.samples, batch.samples);
    EXPECT_EQ(plan.epoch, batch.epoch);
    EXPECT_EQ(plan.last_of_batch, step % 3 == 2);
    EXPECT_EQ(plan.last_of_epoch, step % 9 == 8);
    EXPECT_EQ(first_turn(shape, step), step / 3 * 3);
  }
}

TEST(StepPlan, ARunEndsNoBatchHalfWay) {
  const RunShape shape{10, 4, 2, 3};
  EXPECT_EQ(total_steps(shape, 2, 0), 18U);
  EXPECT_EQ(total_steps(shape, 2, 7), 9U);
  EXPECT_EQ(total_steps(shape, 0, 6), 6U);
  EXPECT_EQ(total_steps(shape, 0, kMost), kMost);
}

TEST(StepPlan, WhatIsDueComesAfterWholeBatches) {
  const auto due = [](uint64_t every, uint32_t turns) {
    std::vector<Step> found;
    for (Step applied = 0; applied <= 12; ++applied)
      if (falls_due(every, applied, turns)) found.push_back(applied);
    return found;
  };
  EXPECT_EQ(due(4, 1), (std::vector<Step>{4, 8, 12}));
  EXPECT_EQ(due(4, 2), (std::vector<Step>{4, 8, 12}));
  EXPECT_EQ(due(4, 3), (std::vector<Step>{6, 9, 12}));
  EXPECT_EQ(due(1, 3), (std::vector<Step>{3, 6, 9, 12}));
  EXPECT_EQ(due(5, 2), (std::vector<Step>{6, 10}));
  EXPECT_TRUE(due(0, 1).empty());
}

RC_GTEST_PROP(StepPlan, PutsEveryPositionInExactlyOneSlotOfExactlyOneStep, ()) {
  const RunShape shape{*rc::gen::inRange<uint64_t>(1, 2'000), *rc::gen::inRange<uint64_t>(1, 300),
                       *rc::gen::inRange<uint32_t>(1, 40)};
  const auto epoch = *rc::gen::inRange<Epoch>(0, 3);
  const uint64_t steps = steps_per_epoch(shape);
  std::vector<int> owners(shape.samples);
  for (Step step = epoch * steps; step < (epoch + 1) * steps; ++step) {
    const StepPlan plan = plan_step(shape, step);
    RC_ASSERT(plan.epoch == epoch);
    RC_ASSERT(plan.samples > 0U);
    RC_ASSERT(plan.samples <= shape.global_batch);
    RC_ASSERT(plan.last_of_epoch == (step + 1 == (epoch + 1) * steps));
    const std::vector<bool> non_empty = non_empty_slots(plan, shape.slots);
    for (uint32_t slot = 0; slot < shape.slots; ++slot) {
      const PositionRange range = slot_positions(plan, slot, shape.slots);
      RC_ASSERT(non_empty[slot] == (range.size() > 0));
      RC_ASSERT(range.size() <= max_slot_samples(shape));
      for (uint64_t position = range.begin; position < range.end; ++position) {
        RC_ASSERT(position < shape.samples);
        ++owners[position];
      }
    }
  }
  for (const int count : owners) RC_ASSERT(count == 1);
}

}  // namespace
}  // namespace lockstep::data
