// Members that hold or compute something else than the others: who is named, and how far back the
// run goes.
#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/decide/checks.h"

namespace lockstep::coordinator {
namespace {

TEST_F(Checks, AgreementIsKeptAndChangesNothingElse) {
  World w(checking_options(3));
  w.train();
  all_agree(w, 2);
  all_agree(w, 4);
  EXPECT_EQ(kept(w).agreed, 4u);
  EXPECT_FALSE(limit(w).has_value());
  EXPECT_EQ(w.state.run, RunState::kStarted);
  EXPECT_TRUE(w.state.pending_checks.empty());
}

TEST_F(Checks, WhoHoldsOtherWeightsIsNamedAndPutOutAndTheTermEnds) {
  World w(checking_options(3));
  w.train();
  all_agree(w, 2);
  check(w, 1, healthy(4));
  check(w, 2, with_wrong_weights(4));
  EXPECT_EQ(check(w, 3, healthy(4)), Reason::kEndedTerm);
  ASSERT_EQ(w.term_ends.size(), 1u);
  EXPECT_THAT(words(w), Names("rank 1 (member 2, node n, pid 1001)", "step 4", "2 workers"));
  EXPECT_THAT(words(w), AllOf(Says("weights"), Names("step 2")));
  EXPECT_EQ(kept(w).expelled, (std::set<Place>{{"n", 1}}));
  EXPECT_EQ(limit(w), 2u);
}

TEST_F(Checks, WhoComputesAnotherGradientIsNamedAlthoughAllHoldTheSameWeights) {
  World w(checking_options(3));
  w.train();
  wire::CheckReport wrong = healthy(2);
  wrong.set_gradient_hash(7);
  check(w, 1, wrong);
  check(w, 2, healthy(2));
  EXPECT_EQ(check(w, 3, healthy(2)), Reason::kEndedTerm);
  EXPECT_THAT(words(w), AllOf(Names("rank 0", "slot 3", "step 2"), Says("gradient")));
  EXPECT_EQ(kept(w).expelled, (std::set<Place>{{"n", 0}}));
  EXPECT_EQ(limit(w), 0u);
}

TEST_F(Checks, WhoAddsUpAnotherSumIsNamedByTheTwoWhoAddedItAgain) {
  World w(checking_options(4));
  w.train();
  EXPECT_EQ(add_up_wrong(w), Reason::kEndedTerm);
  EXPECT_THAT(words(w), AllOf(Names("rank 1 ("), Says("sum")));
  EXPECT_EQ(kept(w).expelled, (std::set<Place>{{"n", 1}}));
}

TEST_F(Checks, TwoThatDifferAreBothNamedAndNobodyIsPutOut) {
  World w(checking_options(2));
  w.train();
  all_agree(w, 2);
  check(w, 1, healthy(4));
  EXPECT_EQ(check(w, 2, with_wrong_weights(4)), Reason::kEndedTerm);
  EXPECT_THAT(words(w), Names("rank 0", "rank 1"));
  EXPECT_TRUE(kept(w).expelled.empty());
  EXPECT_EQ(kept(w).unexplained, (std::set<Step>{4}));
  EXPECT_EQ(limit(w), 2u);
}

TEST_F(Checks, TheSecondTimeAtTheSameStepTheRunEnds) {
  World w(checking_options(2));
  w.train();
  check(w, 1, healthy(4));
  ASSERT_EQ(check(w, 2, with_wrong_weights(4)), Reason::kEndedTerm);
  World again = next_term(w);
  again.train();
  check(again, 1, healthy(2));
  check(again, 2, healthy(2));
  check(again, 1, healthy(4));
  EXPECT_EQ(check(again, 2, with_wrong_weights(4)), Reason::kEndedCorruption);
  ASSERT_EQ(again.ends.size(), 1u);
  EXPECT_EQ(again.ends[0].exit_code, 70);
  EXPECT_THAT(again.ends[0].message, AllOf(Names("rank 0", "rank 1"), Says("before")));
}

// Its workers have registered as workers of a model, which say less.
void train_script(World& w) {
  w.options.job.mutable_model()->clear_name();
  w.train();
  w.options.job.mutable_model()->set_name("script");
  w.options.script = {{"script.optimizer", "SGD"}};
}

// A loop in Python is a likelier source of differences than a machine's arithmetic.
TEST_F(Checks, OfAScriptTheLoopIsBlamedBeforeTheMachine) {
  const auto blames_the_loop_first = AllOf(Says("keep()"), Says("random generator"),
                                           Says("order of a set"), Says("look at the script"));
  World w(checking_options(3));
  train_script(w);
  check(w, 1, healthy(2));
  check(w, 2, with_wrong_weights(2));
  ASSERT_EQ(check(w, 3, healthy(2)), Reason::kEndedTerm);
  EXPECT_THAT(words(w), AllOf(blames_the_loop_first, Names("rank 1")));
  EXPECT_LT(words(w).find("keep()"), words(w).find("memory"));
  World model(checking_options(3));
  model.train();
  check(model, 1, healthy(2));
  check(model, 2, with_wrong_weights(2));
  check(model, 3, healthy(2));
  EXPECT_THAT(words(model), ::testing::Not(Says("script")));
}

TEST_F(Checks, OfAScriptTheLoopIsBlamedWhereNoMajorityIs) {
  World w(checking_options(2));
  train_script(w);
  check(w, 1, healthy(4));
  ASSERT_EQ(check(w, 2, with_wrong_weights(4)), Reason::kEndedTerm);
  EXPECT_THAT(words(w), AllOf(Says("keep()"), ::testing::Not(Says("memory"))));
  World again = next_term(w);
  train_script(again);
  for (const ConnectionId c : {1, 2}) check(again, c, healthy(2));
  check(again, 1, healthy(4));
  ASSERT_EQ(check(again, 2, with_wrong_weights(4)), Reason::kEndedCorruption);
  const std::string& end = again.ends[0].message;
  EXPECT_THAT(end, AllOf(Says("keep()"), Says("order of a set"), Says("memory")));
  EXPECT_LT(end.find("keep()"), end.find("memory"));
}

TEST_F(Checks, OfAScriptTheLoopIsNotBlamedForASum) {
  World w(checking_options(4));
  train_script(w);
  ASSERT_EQ(add_up_wrong(w), Reason::kEndedTerm);
  EXPECT_THAT(words(w), AllOf(Names("rank 1 ("), Says("sum"), ::testing::Not(Says("keep()")),
                              ::testing::Not(Says("look at the script"))));
}

TEST_F(Checks, ThreeThatAllDifferAreAllNamed) {
  World w(checking_options(3));
  w.train();
  check(w, 1, healthy(2));
  check(w, 2, with_wrong_weights(2, 1));
  EXPECT_EQ(check(w, 3, with_wrong_weights(2, 2)), Reason::kEndedTerm);
  EXPECT_TRUE(kept(w).expelled.empty());
  EXPECT_NE(words(w).find("rank 2"), std::string::npos) << words(w);
}

TEST_F(Checks, ReportsThatComeAgainOrTooLateChangeNothing) {
  World w(checking_options(2));
  w.train();
  EXPECT_EQ(check(w, 1, healthy(2)), Reason::kCheckCounted);
  EXPECT_EQ(check(w, 1, with_wrong_weights(2)), Reason::kAlreadyCounted);
  EXPECT_EQ(check(w, 2, healthy(2)), Reason::kChecked);
  EXPECT_EQ(check(w, 2, with_wrong_weights(2)), Reason::kAlreadyCounted);
  EXPECT_EQ(check(w, 2, healthy(3)), Reason::kRefusedMalformed);  // no step of a check
  EXPECT_EQ(check(w, 2, healthy(w.options.total_steps - 1)), Reason::kRefusedMalformed);
  EXPECT_EQ(w.state.run, RunState::kStarted);
}

TEST_F(Checks, WhereOtherBitsAreAllowedOnlyWeightsAreCompared) {
  Options options = checking_options(3);
  options.job.mutable_comm()->set_numerics("fast");
  World w(options);
  w.train();
  EXPECT_EQ(check(w, 1, healthy(2)), Reason::kRefusedMalformed);
  for (ConnectionId c = 1; c <= 3; ++c) check(w, c, only_weights(2));
  EXPECT_EQ(kept(w).agreed, 2u);
  check(w, 1, only_weights(5));  // before a checkpoint
  check(w, 2, only_weights(5, /*flip=*/1));
  EXPECT_EQ(check(w, 3, only_weights(5)), Reason::kEndedTerm);
  EXPECT_THAT(words(w), AllOf(Names("rank 1 (member 2", "step 5"), Says("weights")));
  EXPECT_EQ(kept(w).expelled, (std::set<Place>{{"n", 1}}));
  EXPECT_EQ(limit(w), 2u);
}

TEST_F(Checks, CheckEveryZeroSwitchesAllOff) {
  Options options = checking_options(2, 4);
  options.job.mutable_train()->set_check_every(0);
  World w(options);
  w.train();
  EXPECT_EQ(check(w, 1, only_weights(4)), Reason::kRefusedMalformed);
  for (ConnectionId c = 1; c <= 2; ++c) w.report(c, 1, 0, 4);
  EXPECT_EQ(w.checkpoint(1, 4, true), Reason::kCheckpointAccepted);
  w.leave(1, wire::Leave::FINISHED, 4);
  EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 4), Reason::kEndedFinished);
  EXPECT_THAT(w.ends[0].message, Names("train.check_every"));
}

TEST_F(Checks, TheFirstStepsAreCheckedHoweverRareChecksAre) {
  Options options = checking_options(2);
  options.job.mutable_train()->set_check_every(50);
  World w(options);
  w.train();
  EXPECT_EQ(check(w, 1, healthy(3)), Reason::kRefusedMalformed);
  for (const Step step : {1, 2, 4, 8, 16, 32, 50, 64}) all_agree(w, step);
  EXPECT_EQ(kept(w).agreed, 64u);
}

TEST_F(Checks, TheLastCheckpointCountsOnlyWhenAllHoldItsWeights) {
  World w(checking_options(3, 5));
  w.train();
  all_agree(w, 4);
  for (ConnectionId c = 1; c <= 3; ++c) w.report(c, 1, 0, 5);
  EXPECT_EQ(w.checkpoint(1, 5, true), Reason::kCheckpointWritten);
  EXPECT_EQ(w.checkpoint(1, 5, true), Reason::kAlreadyCounted);  // said again
  EXPECT_TRUE(w.state.checkpoints.empty());
  check(w, 1, only_weights(5));
  check(w, 2, only_weights(5));
  EXPECT_TRUE(w.state.checkpoints.empty());
  EXPECT_EQ(check(w, 3, only_weights(5)), Reason::kChecked);
  ASSERT_EQ(w.state.checkpoints.size(), 1u);
  EXPECT_EQ(w.state.checkpoints[0].step, 5u);
  EXPECT_TRUE(w.state.written.empty());
  EXPECT_EQ(kept(w).agreed, 4u) << "equal weights alone are nothing to go back to";
  for (ConnectionId c = 1; c <= 2; ++c) w.leave(c, wire::Leave::FINISHED, 5);
  EXPECT_EQ(w.leave(3, wire::Leave::FINISHED, 5), Reason::kEndedFinished);
}

TEST_F(Checks, AnEndThatDisagreesIsNoEnd) {
  World w(checking_options(3, 5));
  w.train();
  w.checkpoint(1, 2);
  all_agree(w, 2);
  all_agree(w, 4);
  for (ConnectionId c = 1; c <= 3; ++c) w.report(c, 1, 0, 5);
  check(w, 1, only_weights(5, /*flip=*/1));
  check(w, 2, only_weights(5));
  w.checkpoint(1, 5, true);
  EXPECT_EQ(check(w, 3, only_weights(5)), Reason::kEndedTerm);
  EXPECT_TRUE(w.ends.empty());
  EXPECT_THAT(words(w), AllOf(Names("rank 0 (member 1", "step 5"), Says("weights")));
  ASSERT_EQ(w.state.checkpoints.size(), 1u);
  EXPECT_EQ(w.state.checkpoints[0].step, 2u) << "nothing newer than the last agreement is left";
  EXPECT_EQ(limit(w), 4u);
}

TEST_F(Checks, AnEndThatDisagreesTwiceEndsTheRun) {
  World w(checking_options(2, 3));
  w.train();
  check(w, 1, only_weights(3));
  ASSERT_EQ(check(w, 2, only_weights(3, /*flip=*/1)), Reason::kEndedTerm);
  World again = next_term(w);
  again.train();
  again.checkpoint(1, 3, true);
  check(again, 1, only_weights(3, /*flip=*/2));
  EXPECT_EQ(check(again, 2, only_weights(3, /*flip=*/3)), Reason::kEndedCorruption);
  ASSERT_EQ(again.ends.size(), 1u);
  EXPECT_EQ(again.ends[0].exit_code, 70);
  EXPECT_THAT(again.ends[0].message, Names("rank 0", "rank 1"));
  EXPECT_TRUE(again.state.checkpoints.empty());
}

TEST_F(Checks, ACheckpointWhoseWitnessesAreDeadCountsAllTheSame) {
  World w(checking_options(2));
  w.train();
  check(w, 1, only_weights(5));
  EXPECT_EQ(w.checkpoint(1, 5), Reason::kCheckpointWritten);
  w.kill(2);
  EXPECT_EQ(w.promise_at(1, 5), Reason::kStarted);
  EXPECT_TRUE(w.state.checkpoints.empty());
  w.wait_alive(w.options.lease_ms + 1'000);
  ASSERT_EQ(w.state.checkpoints.size(), 1u);
  EXPECT_TRUE(w.state.written.empty());
}

TEST_F(Checks, AMemberAloneHasNobodyToCompareItsWeightsWith) {
  World w(checking_options(1));
  w.train();
  EXPECT_EQ(w.checkpoint(1, 3), Reason::kCheckpointAccepted);
  EXPECT_EQ(check(w, 1, of_one(4)), Reason::kChecked);
  EXPECT_EQ(kept(w).agreed, 4u);
}

TEST_F(Checks, WhoDiffersFromItselfGoesBackAndTheSecondTimeTheRunEnds) {
  World w(checking_options(1));
  w.train();
  EXPECT_EQ(check(w, 1, of_one(2)), Reason::kChecked);
  EXPECT_EQ(check(w, 1, of_one(4, /*again_flip=*/1)), Reason::kEndedTerm);
  EXPECT_THAT(words(w), Names("rank 0", "slot 3", "step 4", "twice"));
  EXPECT_EQ(limit(w), 2u);
  World again = next_term(w);
  again.train();
  EXPECT_EQ(check(again, 1, of_one(4, /*again_flip=*/1)), Reason::kEndedCorruption);
  ASSERT_EQ(again.ends.size(), 1u);
  EXPECT_EQ(again.ends[0].exit_code, 70);
  EXPECT_TRUE(kept(again).expelled.empty());
}

TEST_F(Checks, ADeathLeavesTheCheckToThoseWhoAreLeft) {
  World w(checking_options(3));
  w.train();
  check(w, 1, healthy(2));
  check(w, 2, healthy(2));
  EXPECT_EQ(w.kill(3), Reason::kRegrouped);
  EXPECT_EQ(w.wait_alive(500), Reason::kChecked);
  EXPECT_EQ(kept(w).agreed, 2u);
}

TEST_F(Checks, WhoWasBehindWhenAGenerationEndedLeavesItsCheckUndecided) {
  World w(checking_options(4));
  w.train();
  check(w, 1, healthy(2));
  check(w, 2, healthy(2));
  w.kill(4);
  w.promise_at(1, 2);
  w.promise_at(2, 2);
  EXPECT_EQ(w.promise_at(3, 1), Reason::kStarted);  // it gets the state of another
  EXPECT_EQ(w.wait_alive(w.options.lease_ms + 1'000), Reason::kNothingDue);
  EXPECT_TRUE(w.state.pending_checks.empty());
  EXPECT_EQ(kept(w).agreed, 0u);
}

TEST_F(Checks, WhatTheDeadSaidOfAStepThatIsNotInTheLineageIsNobodysFault) {
  World w(checking_options(3));
  w.train();
  check(w, 2, healthy(2));
  check(w, 3, with_wrong_weights(2));
  w.kill(3);
  w.kill(2);
  EXPECT_EQ(w.promise_at(1, 1), Reason::kStarted);  // step 2 is done again
  EXPECT_EQ(w.wait_alive(w.options.lease_ms + 1'000), Reason::kNothingDue);
  EXPECT_TRUE(w.state.pending_checks.empty());
  EXPECT_FALSE(limit(w).has_value());
}

TEST_F(Checks, AStepThatIsDoneAgainIsComparedAgainWithinItsGeneration) {
  World w(checking_options(3));
  w.train();
  check(w, 3, with_wrong_weights(2));  // applied by it alone, and it dies
  w.kill(3);
  EXPECT_EQ(w.promise_at(1, 1), Reason::kPromised);
  EXPECT_EQ(w.promise_at(2, 1), Reason::kStarted);
  check(w, 1, healthy(2));
  EXPECT_EQ(check(w, 2, healthy(2)), Reason::kChecked);
  EXPECT_EQ(w.wait_alive(2 * w.options.lease_ms), Reason::kNothingDue);
}

TEST_F(Checks, TwoCheckpointsToGoBackToAreKeptUntilNewerOnesAreCovered) {
  World w(checking_options(2));
  w.train();
  w.report(1, 1, 0, 10);
  w.report(2, 1, 0, 10);
  all_agree(w, 2);
  const auto names = [&] {
    std::vector<Step> steps;
    for (const CheckpointEntry& c : w.state.checkpoints) steps.push_back(c.step);
    return steps;
  };
  const auto keep = [&](Step step) {
    for (ConnectionId c = 1; c <= 2; ++c) check(w, c, only_weights(step));
    EXPECT_EQ(w.checkpoint(1, step), Reason::kCheckpointAccepted);
  };
  for (Step step : {1, 2, 3, 5, 7}) keep(step);
  EXPECT_EQ(names(), (std::vector<Step>{1, 2, 5, 7}));  // keep is 2
  all_agree(w, 6);
  keep(9);
  EXPECT_EQ(names(), (std::vector<Step>{2, 5, 7, 9}));
  all_agree(w, 10);
  keep(11);
  EXPECT_EQ(names(), (std::vector<Step>{7, 9, 11}));
}

}  // namespace
}  // namespace lockstep::coordinator
