#include "worker/session/apply_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep {
namespace {

constexpr RunPlan kPlan{.steps_per_epoch = 4, .total_steps = 10, .has_eval = true};
using Answers = std::vector<std::optional<ResumePoint>>;

ApplyGate::Answer into(Answers& answers) {
  return [&answers](auto point) { answers.push_back(point); };
}

TEST(ApplyGate, AWorkerThatNeverStartedHasNoStateToPromise) {
  ApplyGate gate;
  Answers answers;
  gate.close(0, into(answers));
  EXPECT_EQ(answers, Answers{std::nullopt});
}

TEST(ApplyGate, TheAnswerWaitsForTheApplyInProgressAndCountsIt) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {2, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.try_enter());
  Answers answers;
  gate.close(1, into(answers));
  EXPECT_TRUE(answers.empty());
  gate.leave();
  EXPECT_EQ(answers, (Answers{ResumePoint{3, Phase::kTrain}}));
}

TEST(ApplyGate, AfterTheAnswerNoApplyBegins) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {2, Phase::kTrain}, kPlan));
  Answers answers;
  gate.close(1, into(answers));
  EXPECT_EQ(answers, (Answers{ResumePoint{2, Phase::kTrain}}));
  EXPECT_FALSE(gate.try_enter());
  EXPECT_FALSE(gate.reached({2, Phase::kEnd}));
  EXPECT_EQ(gate.applied(), (ResumePoint{2, Phase::kTrain}));
  EXPECT_FALSE(gate.open(1, {9, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.open(2, {2, Phase::kTrain}, kPlan));
  EXPECT_TRUE(gate.try_enter());
  gate.leave();
}

TEST(ApplyGate, ThePhaseAfterAnEpochsLastStepIsTheEvaluation) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {3, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.try_enter());
  gate.leave();
  EXPECT_EQ(gate.applied(), (ResumePoint{4, Phase::kEval}));
  EXPECT_TRUE(gate.reached({4, Phase::kTrain}));
}

TEST(ApplyGate, StateThatIsBeingReplacedIsNoState) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {3, Phase::kTrain}, kPlan));
  Answers answers;
  gate.close(1, into(answers));
  gate.lost_state();
  gate.close(2, into(answers));
  EXPECT_EQ(answers.back(), std::nullopt);
}

TEST(ApplyGate, UnderLoadNoApplyIsEverSeenAfterTheAnswer) {
  for (int round = 0; round < 200; ++round) {
    ApplyGate gate;
    ASSERT_TRUE(gate.open(1, {0, Phase::kTrain}, kPlan));
    std::atomic<uint64_t> applied{0};
    std::thread training([&] {
      while (gate.try_enter()) {
        applied.fetch_add(1);
        gate.leave();
      }
    });
    std::atomic<bool> answered{false};
    std::atomic<uint64_t> promised{0};
    gate.close(1, [&](auto point) {
      promised = point->step;
      answered = true;
    });
    training.join();
    ASSERT_TRUE(answered);
    EXPECT_EQ(promised, applied);
  }
}

}  // namespace
}  // namespace lockstep
