// The script's code between two epochs: where it lies in a run, who has run it, and what a runner
// does around it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/state_of.h"
#include "tests/unit/session/counting_runner.h"
#include "worker/session/phase_plan.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using testing::RunnerTest;

constexpr PhasePlan kEdgePlan{
    .evals = {.has_data = true, .steps_per_epoch = 4}, .total_steps = 10, .has_edges = true};

wire::Start resume_at(ResumePoint at) {
  wire::Start start;
  *start.mutable_resume() = to_wire(at);
  return start;
}

TEST(Phases, AreOrderedAsARunGoesThroughThem) {
  const std::vector<ResumePoint> run = {{4, Phase::kEval},  {4, Phase::kEdge},
                                        {4, Phase::kTrain}, {4, Phase::kCheckpoint},
                                        {4, Phase::kEnd},   {5, Phase::kEval}};
  for (size_t i = 1; i < run.size(); ++i) EXPECT_LT(run[i - 1], run[i]) << i;
  for (const ResumePoint& at : run) EXPECT_EQ(from_wire(to_wire(at)), at);
  wire::ResumePoint unknown;
  unknown.set_phase(5);
  EXPECT_EQ(from_wire(unknown).phase, Phase::kEnd);
}

TEST(Edges, FollowTheEvaluationOfAnEpochsEndAndOfTheRuns) {
  EXPECT_EQ(kEdgePlan.after_step(3), Phase::kTrain);
  EXPECT_EQ(kEdgePlan.after_step(4), Phase::kEval);
  EXPECT_EQ(kEdgePlan.after_eval(4), Phase::kEdge);
  EXPECT_EQ(kEdgePlan.after_edge(4), Phase::kTrain);
  EXPECT_EQ(kEdgePlan.after_eval(10), Phase::kEdge);
  EXPECT_EQ(kEdgePlan.after_edge(10), Phase::kCheckpoint);
  PhasePlan plain = kEdgePlan;
  plain.has_edges = false;
  EXPECT_EQ(plain.after_eval(4), Phase::kTrain);
  PhasePlan unevaluated = kEdgePlan;
  unevaluated.evals.has_data = false;
  EXPECT_EQ(unevaluated.after_step(4), Phase::kEdge);
}

TEST(Edges, AMemberRunsOneThatItsStateHasNotSeenWhateverTheStartSays) {
  const ResumePoint before{4, Phase::kEdge};
  const ResumePoint after{4, Phase::kTrain};
  EXPECT_EQ(begin_of(resume_at(before), before, kEdgePlan), before);
  EXPECT_EQ(begin_of(resume_at(after), before, kEdgePlan), before);
  EXPECT_EQ(begin_of(resume_at(before), after, kEdgePlan), after);
  EXPECT_EQ(begin_of(resume_at(after), after, kEdgePlan), after);
  EXPECT_EQ(begin_of(resume_at(before), ResumePoint{4, Phase::kEval}, kEdgePlan), before);
  // No member has run it before the evaluation is there.
  EXPECT_EQ(begin_of(resume_at({4, Phase::kEval}), before, kEdgePlan).phase, Phase::kEval);
  // A state of another step says nothing of this edge.
  EXPECT_EQ(begin_of(resume_at({8, Phase::kEdge}), after, kEdgePlan).phase, Phase::kEdge);
  // At the end of the run.
  const ResumePoint end{10, Phase::kEnd};
  EXPECT_EQ(begin_of(resume_at({10, Phase::kEdge}), end, kEdgePlan).phase, Phase::kCheckpoint);
  EXPECT_EQ(begin_of(resume_at(end), end, kEdgePlan), end);
  EXPECT_EQ(begin_of(resume_at(end), ResumePoint{10, Phase::kEdge}, kEdgePlan).phase, Phase::kEdge);
}

TEST(Edges, ACheckpointFitsAPlanThatHasBecomeLongerOrShorter) {
  PhasePlan longer = kEdgePlan;
  longer.total_steps = 20;
  EXPECT_EQ(fit_to_plan({10, Phase::kEdge}, longer).phase, Phase::kTrain);
  EXPECT_EQ(fit_to_plan({10, Phase::kEnd}, longer).phase, Phase::kTrain);
  EXPECT_EQ(fit_to_plan({8, Phase::kEdge}, longer).phase, Phase::kEdge);
  PhasePlan unevaluated = kEdgePlan;
  unevaluated.evals.has_data = false;
  EXPECT_EQ(fit_to_plan({4, Phase::kEval}, unevaluated).phase, Phase::kEdge);
}

TEST(Edges, TheGateAnswersWithTheStateAfterOneThatItHasWaitedFor) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {4, Phase::kEdge}, kEdgePlan));
  ASSERT_TRUE(gate.try_enter());
  std::optional<Standing> answer;
  gate.close(1, [&answer](const Standing& standing) { answer = standing; });
  EXPECT_FALSE(answer);
  gate.leave_at({4, Phase::kTrain});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->applied, (ResumePoint{4, Phase::kTrain}));
}

TEST(Edges, TheGateSaysThatTheScriptEndedTheRunThere) {
  ApplyGate gate;
  ASSERT_TRUE(gate.open(1, {4, Phase::kEdge}, kEdgePlan));
  ASSERT_TRUE(gate.try_enter());
  gate.end_at_edge();
  gate.leave_at({4, Phase::kCheckpoint});
  EXPECT_EQ(gate.standing().ends_at, 4u);
  EXPECT_EQ(gate.standing().applied, (ResumePoint{4, Phase::kCheckpoint}));
}

class EdgeTest : public RunnerTest {
 protected:
  EdgeTest() {
    has_edges_ = true;
    engine_.on_edge = [this](bool is_last) {
      edges_.push_back(std::to_string(engine_.applied_steps()) + (is_last ? " last" : ""));
      return Status::ok();
    };
  }
  std::vector<std::string> edges_;
};

TEST_F(EdgeTest, ARunnerCrossesEachAndTheLastCheckpointHasTheStateAfterIt) {
  run(order(1, {0, Phase::kTrain}, 5));
  EXPECT_THAT(edges_, ElementsAre("3", "5 last"));
  EXPECT_THAT(checkpoint_names(), ElementsAre("step-0000000005-g1-m4-edge"));
  EXPECT_EQ(engine_.count_, 1'005);  // the steps set the number
}

TEST_F(EdgeTest, AScriptMayEndTheRunAtOne) {
  engine_.ends_at_edge = true;
  run(order(1, {0, Phase::kTrain}, 5));
  EXPECT_THAT(edges_, ElementsAre("3"));
  EXPECT_EQ(gate_.standing().ends_at, 3u);
  EXPECT_THAT(checkpoint_names(), ElementsAre("step-0000000003-g1-m4-edge"));
}

TEST_F(EdgeTest, ACheckpointOfTheStepHasTheStateBeforeIt) {
  job_.mutable_checkpoint()->set_every_steps(3);
  job_.mutable_checkpoint()->set_best("loss");
  engine_.loss_after = [](Step applied) { return 1.0 / static_cast<double>(applied); };
  run(order(1, {0, Phase::kTrain}, 6));
  EXPECT_THAT(checkpoint_names(), ElementsAre("step-0000000003-g1-m4", "step-0000000006-g1-m4",
                                              "step-0000000006-g1-m4-edge"));
  const auto info = read_checkpoint_info(temporary_.path() + "/checkpoints/step-0000000003-g1-m4");
  ASSERT_TRUE(info.is_ok());
  EXPECT_EQ(info->manifest.resume, (ResumePoint{3, Phase::kEval}));
  EXPECT_FALSE(info->manifest.is_after_edge);
}

TEST_F(EdgeTest, ThatWhichTheStateHasSeenIsNotRunAgain) {
  engine_.go_to(3);
  ASSERT_TRUE(gate_.open(1, {3, Phase::kTrain}, kEdgePlan));
  run(order(2, {3, Phase::kEdge}, 4));
  EXPECT_THAT(edges_, ElementsAre("4 last"));
}

TEST_F(EdgeTest, ItWaitsUntilTheJournalHasTheEvaluation) {
  port_.has_recorded = false;
  std::thread journal;
  port_.on_eval = [&] {
    EXPECT_TRUE(edges_.empty());
    journal = std::thread([this] {
      port_.has_recorded = true;
      mailbox_.recorded();
    });
  };
  run(order(1, {0, Phase::kTrain}, 3));
  journal.join();
  EXPECT_THAT(edges_, ElementsAre("3 last"));
}

TEST_F(EdgeTest, AGenerationThatIsClosedMeanwhileDoesNotBegin) {
  port_.has_recorded = false;
  port_.on_eval = [this] {
    gate_.close(1, [](const Standing& standing) {
      EXPECT_EQ(standing.applied, (ResumePoint{3, Phase::kEval}));
    });
    mailbox_.close(1);
    mailbox_.end();
  };
  run(order(1, {0, Phase::kTrain}, 3));
  EXPECT_TRUE(edges_.empty());
}

TEST_F(EdgeTest, AWorkerWhoseCodeFailsLeavesAndAnswersNoPrepare) {
  engine_.on_edge = [](bool) { return Status(Code::kUsage, "the script failed"); };
  run(order(1, {0, Phase::kTrain}, 5));
  EXPECT_EQ(port_.last.code(), Code::kUsage);
  EXPECT_TRUE(gate_.is_applying());
}

}  // namespace
}  // namespace lockstep
