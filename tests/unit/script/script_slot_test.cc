// Tests what a slot may say, and what becomes of it in the region of its gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/fails_with.h"
#include "tests/unit/script/script_slot_world.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST_F(ScriptSlot, OtherSamplesThanTheSlotsAreRefused) {
  EXPECT_TRUE(run([&] {
                compute();
                EXPECT_THAT(samples(3), FailsWith(Code::kInternal, Says("of 4 samples got 3")));
              }).is_ok());
}

TEST_F(ScriptSlot, AGradientOfAnotherSizeOrASecondOneIsRefused) {
  EXPECT_TRUE(run([&] {
                compute();
                EXPECT_THAT(take(0, 1, 2), FailsWith(Code::kUsage, Says("has 2 elements")));
                EXPECT_THAT(take(0, 1), FailsWith(Code::kUsage, Says("came twice")));
              }).is_ok());
}

TEST_F(ScriptSlot, ASlotWithoutAStatisticOfTheTrialFails) {
  EXPECT_THAT(run([&] {
                EXPECT_TRUE(samples(4).is_ok());
                EXPECT_TRUE(engine_->backward_begins().is_ok());
                EXPECT_TRUE(take(0, 1).is_ok());
              }),
              FailsWith(Code::kInternal, Says("a statistic of the script's slot is missing")));
}

TEST_F(ScriptSlot, AGradientThatComesInPartsIsTheirSum) {
  std::vector<float> sum;
  EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply&) {
                if (order.kind == LS_APPLY) {
                  sum = sums(1);
                } else {
                  compute();
                  for (int part : {1, 2}) EXPECT_TRUE(take(1, static_cast<float>(part)).is_ok());
                }
              }).is_ok());
  ASSERT_EQ(sum.size(), kElements);
  EXPECT_THAT(sum, Each(6.0f)) << "3 of each of two slots";
}

// Else the bits would depend on which worker has the slots: 2^24 + 1 is 2^24 in a float.
TEST_F(ScriptSlot, PartsOfAGradientAreAddedToEachOtherBeforeTheyAreAddedToAnotherSlots) {
  std::vector<float> sum;
  EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply&) {
                if (order.kind == LS_APPLY) {
                  sum = sums(1);
                  return;
                }
                compute();
                const bool is_first = order.task.slot == 0;
                EXPECT_TRUE(take(1, is_first ? 0x1p24f : 1.0f).is_ok());
                EXPECT_TRUE(take(1, is_first ? 0.0f : 1.0f).is_ok());
              }).is_ok());
  ASSERT_EQ(sum.size(), kElements);
  EXPECT_THAT(sum, Each(16'777'218.0f));
}

TEST_F(ScriptSlot, WhoeverListensHearsTheLossOfEachSlot) {
  EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply& reply) {
                if (order.kind != LS_SLOT) return;
                compute();
                reply.loss = order.task.slot + 0.5;
              }).is_ok());
  EXPECT_THAT(losses_, ElementsAre(Pair(0u, 0.5), Pair(1u, 1.5)));
}

// The samples of a slot that is left out do not count in the step.
TEST_F(ScriptSlot, WhatIsCountedIsAMeanOverTheSamplesOfSlotsThatAreNotLeftOut) {
  view_.skips.add(0, 1, 2);
  std::vector<float> sum;
  EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply& reply) {
                if (order.kind == LS_APPLY) {
                  sum = sums(0);
                  return;
                }
                compute();
                reply.count = 2;
              }).is_ok());
  ASSERT_EQ(sum.size(), kElements);
  EXPECT_THAT(sum, Each(2.0f)) << "4 samples, 2 of them counted";
}

TEST_F(ScriptSlot, AStepInWhichNothingCountsIsRecordedAsLeftOut) {
  size_t applies = 0;
  EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply& reply) {
                applies += order.kind == LS_APPLY ? 1 : 0;
                if (order.kind == LS_SLOT) compute();
                reply.count = 0;
              }).is_ok());
  ASSERT_EQ(outcomes_.size(), 1u);
  EXPECT_TRUE(outcomes_[0].record.skipped());
  EXPECT_EQ(applies, 0u);
  EXPECT_EQ(engine_->applied_steps(), 1u);
}

// The script has done nothing wrong: its worker goes on in the next generation.
TEST_F(ScriptSlot, AGenerationThatClosesDuringASlotIsNoFailureOfTheScript) {
  EXPECT_THAT(run([&] {
                EXPECT_TRUE(samples(4).is_ok());
                collective_->abort();
                EXPECT_THAT(engine_->backward_begins(), FailsWith(Code::kAborted));
                EXPECT_THAT(take(0, 1), FailsWith(Code::kAborted));
                EXPECT_THAT(statistic(), FailsWith(Code::kAborted));
              }),
              FailsWith(Code::kAborted));
}

class ScriptSums : public ScriptSlot {
 protected:
  ScriptSums() : ScriptSlot({.has_late = false, .has_counts = false}) {}

  // The sum of the first parameter, where the slots have these gradients.
  float sum_of(std::optional<float> first, std::optional<float> second) {
    float sum = 0;
    EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply&) {
                  if (order.kind == LS_APPLY)
                    sum = sums(0)[0];
                  else
                    compute(order.task.slot == 0 ? first : second);
                }).is_ok());
    return sum;
  }
};

// As in a world where another worker has the second slot: -0 and the zeros of its region are 0.
TEST_F(ScriptSums, NegativeZeroAndAGradientThatASlotDoesNotGiveArePositiveZero) {
  EXPECT_FALSE(std::signbit(sum_of(-0.0f, std::nullopt)));
}

TEST_F(ScriptSums, NegativeZerosAreOne) {
  EXPECT_TRUE(std::signbit(sum_of(-0.0f, -0.0f)));
}

// The loss is a mean over what is counted, a metric one over samples.
TEST_F(ScriptSlot, AMetricIsWeighedByItsSamplesWhateverTheLossCounts) {
  EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply& reply) {
                if (order.kind != LS_SLOT) return;
                compute();
                metric_ = order.task.slot == 0 ? 1.0 : 2.0;
                reply.count = order.task.slot == 0 ? 1 : 3;
              }).is_ok());
  ASSERT_EQ(outcomes_.size(), 1u);
  EXPECT_FLOAT_EQ(static_cast<float>(outcomes_[0].record.metrics(0).value()), 1.5f);
}

class ScriptTurns : public ScriptSlot {
 protected:
  ScriptTurns() : ScriptSlot({.turns = 2}) {}
};

TEST_F(ScriptTurns, AnApplyIsToldItsTurn) {
  std::vector<uint32_t> turns;
  EXPECT_TRUE(run(3, [&](const ls_order& order, ls_reply&) {
                if (order.kind == LS_SLOT)
                  compute();
                else
                  turns.push_back(order.task.turn);
              }).is_ok());
  EXPECT_THAT(turns, ElementsAre(0u, 1u, 0u));
}

// In the first turn the loop's body asks for the end, or after_step= does.
TEST_F(ScriptTurns, AnEndWaitsForTheLastTurnOfItsBatch) {
  EXPECT_TRUE(run(2, [&](const ls_order& order, ls_reply& reply) {
                if (order.kind == LS_SLOT) compute();
                reply.ends_run = order.task.turn == 0 || order.kind == LS_SLOT;
              }).is_ok());
  ASSERT_EQ(outcomes_.size(), 2u);
  EXPECT_FALSE(outcomes_[0].ends_here);
  EXPECT_TRUE(outcomes_[1].ends_here);
}

class ScriptCheck : public ScriptSlot {
 protected:
  ScriptCheck() : ScriptSlot({.check_every = 1}) {}

  // Returns what the worker says of a step of slots with this gradient.
  wire::CheckReport found_with(float gradient) {
    EXPECT_TRUE(run(1, [&](const ls_order& order, ls_reply&) {
                  if (order.kind == LS_SLOT) compute(gradient);
                }).is_ok());
    if (outcomes_.empty() || !outcomes_[0].check) return {};
    return *outcomes_[0].check;
  }
};

TEST_F(ScriptCheck, AMemberTellsTheGradientThatItWasToCheck) {
  EXPECT_TRUE(found_with(1).has_gradient());
}

// Their bits are whichever operand's came first.
TEST_F(ScriptCheck, GradientsThatAreNoNumbersAreNotCompared) {
  const wire::CheckReport found = found_with(NAN);
  EXPECT_EQ(found.applied(), 1u);
  EXPECT_FALSE(found.has_gradient());
}

}  // namespace
}  // namespace lockstep
