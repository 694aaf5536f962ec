#include "worker/session/apply_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep {
namespace {

constexpr PhasePlan kPlan{.evals = {.has_data = true, .steps_per_epoch = 4}, .total_steps = 10};
using Answers = std::vector<Standing>;

ApplyGate::Answer into(Answers& answers) {
  return [&answers](const Standing& standing) { answers.push_back(standing); };
}

TEST(ApplyGate, AWorkerThatNeverStartedHasNoStateToPromise) {
  ApplyGate gate;
  Answers answers;
  gate.close(0, into(answers));
  EXPECT_EQ(answers, Answers{Standing{}});
}

TEST(ApplyGate, TheAnswerWaitsForTheApplyInProgressAndCountsIt) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {2, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.try_enter());
  Answers answers;
  gate.close(1, into(answers));
  EXPECT_TRUE(answers.empty());
  gate.leave();
  const ResumePoint since{2, Phase::kTrain};
  EXPECT_EQ(answers, (Answers{{1, since, ResumePoint{3, Phase::kTrain}}}));
}

TEST(ApplyGate, AfterTheAnswerNoApplyBegins) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {2, Phase::kTrain}, kPlan));
  Answers answers;
  gate.close(1, into(answers));
  const ResumePoint at{2, Phase::kTrain};
  EXPECT_EQ(answers, (Answers{{1, at, at}}));
  EXPECT_FALSE(gate.try_enter());
  EXPECT_FALSE(gate.reached({2, Phase::kEnd}));
  EXPECT_EQ(gate.standing(), answers[0]);
  EXPECT_FALSE(gate.open(1, {9, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.open(2, {2, Phase::kTrain}, kPlan));
  EXPECT_TRUE(gate.try_enter());
  gate.leave();
}

TEST(ApplyGate, AnEndByTheScriptIsPartOfTheAnswerWithItsStepAndNotBefore) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {4, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.try_enter());
  gate.end_here();
  EXPECT_EQ(gate.standing().ends_at, 0u);
  Answers answers;
  gate.close(1, into(answers));
  gate.leave();
  const ResumePoint since{4, Phase::kTrain};
  EXPECT_EQ(answers, (Answers{{1, since, ResumePoint{5, Phase::kEval}, 5}}));
  ASSERT_TRUE(gate.open(2, {5, Phase::kEval}, kPlan));  // and it is said again
  EXPECT_EQ(gate.standing().ends_at, 5u);
  ASSERT_TRUE(gate.open(3, {3, Phase::kTrain}, kPlan));  // its steps are gone
  ASSERT_TRUE(gate.open(4, {5, Phase::kTrain}, kPlan));
  EXPECT_EQ(gate.standing().ends_at, 0u);
}

TEST(ApplyGate, AtThePlannedEndTheScriptEndsNothing) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {9, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.try_enter());
  gate.end_here();
  gate.leave();
  EXPECT_EQ(gate.standing().applied->step, 10u);
  EXPECT_EQ(gate.standing().ends_at, 0u);
}

TEST(ApplyGate, ThePhaseAfterAnEpochsLastStepIsTheEvaluation) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {3, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.try_enter());
  gate.leave();
  EXPECT_EQ(gate.standing().applied, (ResumePoint{4, Phase::kEval}));
  EXPECT_TRUE(gate.reached({4, Phase::kTrain}));
}

TEST(ApplyGate, StateThatIsBeingReplacedIsNoState) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {3, Phase::kTrain}, kPlan));
  Answers answers;
  gate.close(1, into(answers));
  gate.lost_state();
  gate.close(2, into(answers));
  EXPECT_EQ(answers.back().applied, std::nullopt);
  EXPECT_EQ(answers.back().lived, 1u);  // it was there all the same
}

TEST(ApplyGate, AStandingNamesTheNewestGenerationThatWasOpenedAndWhereItBegan) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {0, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.try_enter());
  gate.leave();
  // A planned change: the generation before was never closed.
  ASSERT_TRUE(gate.open(3, {1, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.try_enter());
  gate.leave();
  const Standing expected{3, {1, Phase::kTrain}, ResumePoint{2, Phase::kTrain}};
  EXPECT_EQ(gate.standing(), expected);
  Answers answers;
  gate.close(4, into(answers));
  EXPECT_EQ(answers, Answers{expected});
  EXPECT_FALSE(gate.open(4, {2, Phase::kTrain}, kPlan));
  EXPECT_EQ(gate.standing(), expected);  // a generation that never was open was not lived in
}

TEST(ApplyGate, AfterForgettingItStandsNowhereAndWhatWasOpenIsClosed) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(2, {3, Phase::kTrain}, kPlan));
  gate.forget();
  EXPECT_EQ(gate.standing(), Standing{});
  EXPECT_FALSE(gate.try_enter());
  EXPECT_FALSE(gate.open(2, {3, Phase::kTrain}, kPlan));
  EXPECT_TRUE(gate.open(5, {0, Phase::kTrain}, kPlan));
}

TEST(ApplyGate, AnApplyInProgressBringsNothingBackThatWasForgotten) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(2, {3, Phase::kTrain}, kPlan));
  ASSERT_TRUE(gate.try_enter());
  gate.forget();
  Answers answers;
  gate.close(3, into(answers));
  EXPECT_TRUE(answers.empty());  // still not before the apply ended
  gate.leave();
  EXPECT_EQ(answers, Answers{Standing{}});
  EXPECT_EQ(gate.standing(), Standing{});
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
    gate.close(1, [&](const Standing& standing) {
      promised = standing.applied->step;
      answered = true;
    });
    training.join();
    ASSERT_TRUE(answered);
    EXPECT_EQ(promised, applied);
  }
}

}  // namespace
}  // namespace lockstep
