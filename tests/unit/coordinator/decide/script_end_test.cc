// Ends of runs by their scripts: what counts, and what becomes of it.
#include "coordinator/state/script_end.h"

#include <gmock/gmock.h>

#include "coordinator/state/evaluations.h"
#include "tests/unit/coordinator/decide/recovery.h"

namespace lockstep::coordinator {
namespace {

using ::testing::HasSubstr;

Options ten_steps() {
  return small_options(2, 10);
}

Reason end_at(World& w, ConnectionId c, Step step, Generation g = 0) {
  wire::Envelope e;
  e.set_generation(g);
  e.mutable_end()->set_step(step);
  return w.say(c, e);
}

// Both have reported the steps until there.
void train_to(World& w, Step step) {
  w.train();
  for (const ConnectionId c : {1u, 2u})
    EXPECT_EQ(w.report(c, 1, 0, step), Reason::kRecordsAccepted);
}

void evaluate_at(World& w, Step step) {
  for (const ConnectionId c : {1u, 2u}) {
    wire::Envelope e;
    e.mutable_step_records()->set_batch(2);
    e.mutable_step_records()->add_evals()->set_step(step);
    e.mutable_step_records()->mutable_evals(0)->set_samples(10);
    EXPECT_EQ(w.say(c, e), Reason::kRecordsAccepted);
  }
}

std::string kept(const World& w) {
  const auto contents = w.journal.load();
  const auto found = contents->settings.find(kEndSetting);
  return found == contents->settings.end() ? "" : found->second;
}

TEST(ScriptEnds, BetweenTwoStepsOfABatchIsNoEnd) {
  Options options = ten_steps();
  options.shape.turns = 2;
  World w(options);
  train_to(w, 3);
  EXPECT_NE(end_at(w, 1, 3), Reason::kScriptEnded);
  EXPECT_EQ(kept(w), "");
  EXPECT_EQ(end_at(w, 2, 4), Reason::kScriptEnded);
}

TEST(ScriptEnds, AReportIsJournalledOnceAndTheRunIsCompleteThere) {
  World w(ten_steps());
  train_to(w, 3);
  EXPECT_EQ(end_at(w, 1, 3), Reason::kScriptEnded);
  EXPECT_EQ(kept(w), "3 of 10");
  EXPECT_EQ(end_at(w, 2, 3), Reason::kAlreadyCounted);
  EXPECT_EQ(end_step(w.state, w.options), 3u);
  evaluate_at(w, 3);
  EXPECT_EQ(w.checkpoint(1, 3, /*final=*/true), Reason::kCheckpointAccepted);
  EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 3), Reason::kLeft);
  EXPECT_EQ(w.leave(1, wire::Leave::FINISHED, 3), Reason::kEndedFinished);
  EXPECT_EQ(w.ends[0].exit_code, 0);
  EXPECT_THAT(w.ends[0].message, HasSubstr("after step 3 of 10 (run.finish())"));
}

TEST(ScriptEnds, WithoutAReportNoMemberIsFinishedBeforeTheLastStep) {
  World w(ten_steps());
  train_to(w, 3);
  EXPECT_EQ(w.leave(1, wire::Leave::FINISHED, 3), Reason::kEndedWorkerFailed);
}

TEST(ScriptEnds, ARecordBeyondTheEndIsAContradiction) {
  World w(ten_steps());
  train_to(w, 3);
  end_at(w, 1, 3);
  EXPECT_EQ(w.report(2, 2, 3, 4), Reason::kEndedCorruption);
  EXPECT_THAT(w.ends[0].message, HasSubstr("lies after the end of the run"));
}

TEST(ScriptEnds, NoStepThatTheRunIsBeyondAndNoneThatItDoesNotHaveCanBeItsEnd) {
  World w(ten_steps());
  train_to(w, 3);
  for (const Step step : {0u, 2u, 11u}) EXPECT_EQ(end_at(w, 1, step), Reason::kRefusedMalformed);
  EXPECT_EQ(end_at(w, 1, 10), Reason::kAlreadyCounted) << "the plan's";
  EXPECT_EQ(kept(w), "");
}

TEST(ScriptEnds, TheNextGenerationHasItsLengthAndItsEvaluation) {
  World w(ten_steps());
  train_to(w, 3);
  end_at(w, 1, 3);
  w.kill(1);
  EXPECT_EQ(w.promise_at(2, 3), Reason::kStarted) << "it stands there, and has not seen the end";
  EXPECT_EQ(w.started().total_steps(), 3u);
  EXPECT_EQ(w.started().resume().phase(), static_cast<uint32_t>(Phase::kEval));
}

TEST(ScriptEnds, AnAnswerReplacesALostReport) {
  World w(ten_steps());
  train_to(w, 2);
  w.kill(1);
  wire::Envelope e;
  wire::Promise* m = e.mutable_promise();
  m->set_generation(w.state.generation);
  m->set_has_state(true);
  m->mutable_applied()->set_step(3);
  m->set_lived(w.state.source_generation);
  m->set_ends_at(2);
  EXPECT_EQ(w.say(2, e), Reason::kRefusedMalformed) << "it stands at another step";
  m->set_ends_at(3);
  EXPECT_EQ(w.say(2, e), Reason::kStarted);
  EXPECT_EQ(w.started().total_steps(), 3u);
  EXPECT_EQ(kept(w), "3 of 10");
}

TEST(ScriptEnds, AReportOfAGenerationThatOthersHaveGoneOnFromSaysNothing) {
  World w(ten_steps());
  train_to(w, 3);
  const Generation first = w.state.generation;
  w.kill(1);
  EXPECT_EQ(w.promise_at(2, 3), Reason::kStarted);
  EXPECT_EQ(end_at(w, 2, 3, first), Reason::kRefusedStaleGeneration);
  EXPECT_EQ(kept(w), "");
  EXPECT_EQ(w.started().total_steps(), 10u);
}

TEST(ScriptEnds, AMemberThatConnectsAgainSaysItAgain) {
  World w(ten_steps());
  train_to(w, 3);
  wire::Register again = World::registration(0);
  again.set_member(w.state.by_connection.at(1));
  again.set_generation(w.state.generation);
  again.set_has_state(true);
  again.mutable_applied()->set_step(3);
  again.set_ends_at(3);
  EXPECT_EQ(w.join(11, again), Reason::kReconnected);
  EXPECT_EQ(kept(w), "3 of 10");
}

TEST(ScriptEnds, AStepWithABadLossTakesTheEndWithIt) {
  World w(ten_steps());
  train_to(w, 2);
  end_at(w, 1, 3);
  wire::Envelope e = w.records(1, 2, 2, 3);
  e.mutable_step_records()->mutable_records(0)->set_loss(std::numeric_limits<double>::quiet_NaN());
  w.say(1, e);
  EXPECT_EQ(w.say(2, e), Reason::kEndedBadLoss);
  EXPECT_EQ(kept(w), "");
}

TEST(ScriptEnds, AReadSettingIsTheOneThatWasWritten) {
  const ScriptEnd end{12, 345};
  EXPECT_EQ(script_end_in({{kEndSetting, text_of(end)}}), end);
  EXPECT_EQ(script_end_in({}), std::nullopt);
  EXPECT_EQ(script_end_in({{kEndSetting, "of 12"}}), std::nullopt);
  EXPECT_EQ(last_step(end, 345), 12u);
  EXPECT_EQ(last_step(end, 7), 7u);
  EXPECT_TRUE(holds_in(end, 345));
  EXPECT_FALSE(holds_in(end, 346));
}

}  // namespace
}  // namespace lockstep::coordinator
