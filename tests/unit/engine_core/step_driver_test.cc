// Steps without a model and without LibTorch: gradients are numbers made of weights, step and slot.
#include "worker/engine/step_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/fails_with.h"
#include "tests/unit/engine_core/driver_world.h"
#include "worker/engine/eval_scores.h"

namespace lockstep {
namespace {

using namespace driver_world;

TEST(StepDriver, EveryWorldHasTheSameRecordsAndWeights) {
  DriverWorld alone(kWorlds[0], some_skips());
  alone.run(6);
  ASSERT_EQ(alone.hashes(0).size(), 6U);
  EXPECT_EQ(alone.ranks[0]->outcomes[2].record.samples(), 3U) << "the short step of an epoch";
  EXPECT_TRUE(alone.ranks[0]->outcomes[2].epoch_ended);
  EXPECT_EQ(alone.ranks[0]->outcomes[1].record.slots_size(), 3) << "two of five are left out";
  EXPECT_EQ(alone.ranks[0]->outcomes[0].record.metrics(0).name(), "first");
  for (const auto& runs : kWorlds) {
    SCOPED_TRACE(runs.size());
    DriverWorld world(runs, some_skips());
    world.run(6);
    for (size_t r = 0; r < runs.size(); ++r) {
      EXPECT_TRUE(world.ranks[r]->last.is_ok()) << world.ranks[r]->last.message();
      EXPECT_EQ(world.hashes(r), alone.hashes(0));
      EXPECT_EQ(world.ranks[r]->computer.weights, alone.ranks[0]->computer.weights);
      EXPECT_EQ(world.ranks[r]->driver.progress().step, 6U);
    }
  }
}

TEST(StepDriver, AStepWithoutSlotsIsCountedAndNothingIsComputed) {
  SkipSet skips;
  skips.add(0, 0, kSlots);
  DriverWorld world(kWorlds[1], skips);
  world.run(1);
  for (const auto& rank : world.ranks) {
    EXPECT_TRUE(rank->last.is_ok());
    EXPECT_TRUE(rank->computer.computed.empty());
    EXPECT_EQ(rank->computer.applied, 1U);
    EXPECT_THAT(rank->computer.weights, testing::Each(1.0f));
    EXPECT_EQ(rank->outcomes[0].record.samples(), 0U);
  }
}

TEST(StepDriver, BehindAClosedGateNothingChanges) {
  for (const bool is_passed_over : {false, true}) {
    SkipSet skips;
    if (is_passed_over) skips.add(0, 0, kSlots);
    DriverWorld world(kWorlds[0], skips);
    Rank& rank = *world.ranks[0];
    rank.is_open = false;
    world.run(1);
    EXPECT_THAT(rank.last, FailsWith(Code::kAborted, Names("step 0")));
    EXPECT_EQ(rank.computer.applied, 0U);
    EXPECT_THAT(rank.computer.weights, testing::Each(1.0f));
    EXPECT_EQ(rank.driver.progress().step, 0U);
  }
}

TEST(StepDriver, AFailedSlotEndsTheStepOnEveryRankBeforeTheGate) {
  DriverWorld world(kWorlds[2]);
  world.ranks[1]->computer.fails_in = 2;
  world.run(1);
  EXPECT_EQ(world.ranks[1]->last.code(), Code::kBadData);
  EXPECT_THAT(world.ranks[1]->computer.computed, testing::ElementsAre(1, 2));
  EXPECT_THAT(world.ranks[1]->computer.in_hand.get().slots,
              testing::ElementsAre(SlotInHand{.step = 0, .slot = 2}));
  for (const size_t other : {0, 2}) {
    EXPECT_EQ(world.ranks[other]->last.code(), Code::kAborted);
    EXPECT_TRUE(world.ranks[other]->computer.in_hand.get().slots.empty()) << "not its fault";
  }
  for (const auto& rank : world.ranks) EXPECT_EQ(rank->computer.applied, 0U);
}

TEST(StepDriver, AFailedApplyBlamesNoSamplesAndLeavesTheGateTaken) {
  DriverWorld world(kWorlds[1]);
  for (const auto& rank : world.ranks) rank->computer.fails_to_apply = true;
  world.run(1);
  for (const auto& rank : world.ranks) {
    EXPECT_EQ(rank->last.code(), Code::kInternal);
    EXPECT_TRUE(rank->computer.is_gate_taken);
    EXPECT_TRUE(rank->computer.in_hand.get().slots.empty());
  }
}

TEST(StepDriver, AStepThatIsNotAppliedIsRecordedAsSkippedAndRanksMustAgreeOnIt) {
  std::vector<uint64_t> hashes;
  for (const bool skips : {false, true}) {
    DriverWorld world(kWorlds[0]);
    world.ranks[0]->computer.skips = skips;
    world.run(1);
    ASSERT_EQ(world.ranks[0]->outcomes.size(), 1U);
    const wire::StepRecord& record = world.ranks[0]->outcomes[0].record;
    EXPECT_EQ(record.skipped(), skips);
    hashes.push_back(record.common_hash());
  }
  EXPECT_NE(hashes[0], hashes[1]);
}

// The second loader of a check may find no room for its thread.
TEST(StepDriver, AFailedCheckBlamesNoSamples) {
  DriverWorld world(kWorlds[0], {}, /*check_every=*/1);
  Rank& rank = *world.ranks[0];
  rank.computer.fails_again = true;
  world.run(1);
  EXPECT_EQ(rank.last.code(), Code::kInternal);
  EXPECT_TRUE(rank.computer.in_hand.get().slots.empty());
}

TEST(StepDriver, MembersCheckASlotAndTheWeights) {
  DriverWorld world(kWorlds[2], {}, /*check_every=*/1);
  world.run(5);
  uint32_t again = 0;
  for (size_t step = 0; step < 5; ++step) {
    const auto& first = world.ranks[0]->outcomes[step].check;
    ASSERT_TRUE(first.has_value());
    std::optional<uint64_t> gradient;
    uint32_t computed = 0;
    for (const auto& rank : world.ranks) {
      const auto& check = rank->outcomes[step].check;
      ASSERT_TRUE(check.has_value());
      EXPECT_EQ(check->weights_hash(), first->weights_hash());
      EXPECT_EQ(check->applied(), step + 1);
      if (!check->has_gradient()) continue;
      ++computed;
      if (gradient) {
        EXPECT_EQ(check->gradient_hash(), *gradient);
      }
      gradient = check->gradient_hash();
    }
    EXPECT_EQ(computed, step == 2 ? 0U : 3U) << "the short step leaves slot 2 empty";
  }
  for (const auto& rank : world.ranks) again += rank->computer.again;
  EXPECT_EQ(again, 4U * 2U);
}

TEST(StepDriver, AMemberAloneComputesASlotTwice) {
  DriverWorld world({{0, 5}}, {}, /*check_every=*/3);
  world.run(4);
  const auto& rank = *world.ranks[0];
  std::vector<Step> checked;
  for (const StepOutcome& outcome : rank.outcomes) {
    if (!outcome.check) continue;
    checked.push_back(outcome.check->applied());
    if (!outcome.check->has_gradient()) continue;  // an empty slot
    EXPECT_TRUE(outcome.check->has_again());
    EXPECT_EQ(outcome.check->again_hash(), outcome.check->gradient_hash());
  }
  EXPECT_EQ(checked, (std::vector<Step>{1, 2, 3, 4}));
  EXPECT_GE(rank.computer.again, 3U);
}

TEST(StepDriver, OnlyAVoteOfAllWithSlotsStops) {
  DriverWorld world({{0, 2}, {2, 5}, {5, 5}});
  world.ranks[0]->driver.request_stop();
  world.run(1);
  for (const auto& rank : world.ranks) EXPECT_FALSE(rank->outcomes[0].all_want_stop);
  world.ranks[1]->driver.request_stop();
  world.ranks[2]->driver.request_stop();
  world.run(1);
  for (const auto& rank : world.ranks) {
    EXPECT_TRUE(rank->outcomes[1].all_want_stop);
    EXPECT_FALSE(rank->outcomes[1].all_want_switch);
  }
}

TEST(StepDriver, TheGateHearsOfAnEndByTheScriptWithTheStepThatItEnds) {
  DriverWorld world({{0, 2}, {2, 5}});
  for (const auto& rank : world.ranks) rank->computer.ends_at = 2;
  world.run(2);
  for (const auto& rank : world.ranks) {
    EXPECT_EQ(rank->computer.told_to_end, std::vector<Step>{2});
    EXPECT_FALSE(rank->outcomes[0].ends_here);
    EXPECT_TRUE(rank->outcomes[1].ends_here);
  }
}

TEST(StepDriver, AViewOfAnotherWorldOrModelIsRefused) {
  DriverWorld world(kWorlds[1]);
  Rank& rank = *world.ranks[0];
  GenerationView view = rank.driver.view();
  view.slot_runs.pop_back();
  EXPECT_EQ(rank.driver.begin_generation(view, {}, *rank.buffer, {}).code(), Code::kInternal);
  EXPECT_EQ(rank.driver.view().collective, nullptr);
}

// Batches of unequal loss, so that an order of adding would show.
TEST(EvaluateTogether, EveryWorldHasTheSameReport) {
  const EvalTask task{.samples = 23, .batch = 4, .predictions = 23, .has_average = true};
  std::vector<std::string> reports;
  for (const auto& runs : kWorlds) {
    DriverWorld world(runs);
    std::vector<std::thread> threads;
    std::vector<std::string> own(runs.size());
    for (size_t r = 0; r < runs.size(); ++r) {
      threads.emplace_back([&, r] {
        const auto report =
            evaluate_together(world.ranks[r]->driver.view(), {.metrics = {"first"}}, 7, task,
                              [](uint64_t begin, uint64_t end, std::span<EvalScore> scores) {
                                for (size_t kind = 0; kind < scores.size(); ++kind) {
                                  scores[kind].loss = 1.0 / static_cast<double>(3 + begin + kind);
                                  scores[kind].correct = end - begin - kind;
                                  scores[kind].metrics[0] = 1.0 / static_cast<double>(7 + end);
                                }
                                return Status::ok();
                              });
        ASSERT_TRUE(report.is_ok()) << report.status().message();
        EXPECT_EQ(report->correct(), 23U);
        EXPECT_EQ(report->metrics_size(), 4);  // first, ema_loss, ema_accuracy, ema_first
        own[r] = report->SerializeAsString();
      });
    }
    for (std::thread& thread : threads) thread.join();
    reports.insert(reports.end(), own.begin(), own.end());
  }
  for (const std::string& report : reports) EXPECT_EQ(report, reports[0]);
}

TEST(EvaluateTogether, EveryScoredBatchIsProgressAndAClosedGenerationEndsIt) {
  const EvalTask task{.samples = 23, .batch = 4, .predictions = 23};
  DriverWorld world(kWorlds[0]);
  world.run(1);
  Rank& rank = *world.ranks[0];
  GenerationView view = rank.driver.view();
  std::vector<uint32_t> seen;
  view.is_closed = [&] { return seen.size() == 3; };
  rank.driver.enters(Phase::kEval);
  const auto report = evaluate_together(view, {}, 1, task, [&](auto, auto, auto) {
    EXPECT_EQ(rank.driver.progress().phase, Phase::kEval);
    seen.push_back(rank.driver.progress().bucket);
    return Status::ok();
  });
  EXPECT_THAT(report, FailsWith(Code::kAborted, Says("closed")));
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2)) << "the step's buckets count no more";
  EXPECT_EQ(rank.driver.progress().bucket, 3U);
}

}  // namespace
}  // namespace lockstep
