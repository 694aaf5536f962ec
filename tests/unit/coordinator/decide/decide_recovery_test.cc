// A death, and what goes on after it.
#include "comm/run/job/metric_names.h"
#include "tests/unit/coordinator/decide/recovery.h"

namespace lockstep::coordinator {
namespace {

TEST(Recovery, AfterADeathTheOthersGoOnFromTheLargestAnswerAndItsOwnersAreTheSources) {
  World w(small_options(3, 100));
  train_three(w, 5);
  EXPECT_EQ(w.kill(3), Reason::kRegrouped);
  EXPECT_EQ(w.state.run, RunState::kPrepared);
  EXPECT_EQ(w.sent(1).back().prepare().members_size(), 2);
  EXPECT_EQ(w.promise_at(1, 7), Reason::kPromised);
  EXPECT_EQ(w.promise_at(2, 6), Reason::kStarted);
  EXPECT_EQ(w.started().resume().step(), 7u);
  EXPECT_EQ(sources(w), std::vector<uint64_t>{1});
  EXPECT_EQ(w.started().members(1).slots().end(), 4u);
  const auto ledger = w.journal.load()->ledger;
  ASSERT_EQ(ledger.size(), 2u);
  EXPECT_EQ(ledger[0].last->step, 7u);
  EXPECT_EQ(ledger[1].first.step, 7u);
  EXPECT_EQ(w.journal.generations().at(1), GenerationState::kClosed);
  EXPECT_EQ(w.journal.generations().at(2), GenerationState::kStarted);
}

TEST(Recovery, TheWriterIsTheFirstThatHoldsTheState) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.kill(1);
  w.promise_at(2, 6);
  EXPECT_EQ(w.promise_at(3, 7), Reason::kStarted);
  EXPECT_EQ(sources(w), std::vector<uint64_t>{3});
  EXPECT_EQ(w.started().members(0).member(), 2u);
  EXPECT_EQ(w.started().writer(), 3u);
}

TEST(Recovery, ADeathIsToldInOneLineWithWhoHowAndWhatFollows) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.kill(2);
  std::string line;
  for (const Action& action : w.actions) {
    const auto* log = std::get_if<LogLine>(&action);
    if (log != nullptr && log->event == "member_died") line = log->message;
  }
  for (const char* part : {"rank 1", "member 2", "node n", "pid 1001", "signal 9 (SIGKILL)",
                           "after step 5", "2 workers go on"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part << " in: " << line;
  }
  EXPECT_TRUE(w.is_durable("member_died"));
}

TEST(Recovery, StepsBeforeTheResumePointCountWithOneRecordStepsAfterItWithAll) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.kill(3);
  w.promise_at(1, 7);
  w.promise_at(2, 6);
  EXPECT_EQ(w.history.size(), 5u);
  EXPECT_EQ(w.report_of(1, 1, 2, 5, 7), Reason::kRecordsAccepted);  // queued before the death
  EXPECT_EQ(w.history.size(), 7u);
  EXPECT_EQ(w.report_of(1, 2, 2, 5, 6), Reason::kRecordsAccepted);  // late, and it agrees
  EXPECT_EQ(w.report(1, 3, 7, 9), Reason::kRecordsAccepted);
  EXPECT_EQ(w.history.size(), 7u);
  EXPECT_EQ(w.report(2, 3, 7, 8), Reason::kRecordsAccepted);
  EXPECT_EQ(w.history.size(), 8u);
  for (size_t i = 0; i < w.history.size(); ++i) EXPECT_EQ(w.history[i].step, i);
}

TEST(Recovery, ALateRecordThatDisagreesWithACountedOneIsSeen) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.kill(3);
  w.promise_at(1, 7);
  w.promise_at(2, 6);
  w.report_of(1, 1, 2, 5, 7);
  EXPECT_EQ(w.report_of(1, 2, 2, 5, 6, 8), Reason::kEndedCorruption);
}

TEST(Recovery, RecordsOfTheStepThatIsRedoneAreVoidWhoeverSendsThem) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.kill(3);
  w.promise_at(1, 6);
  w.promise_at(2, 6);
  EXPECT_EQ(w.report_of(1, 1, 2, 5, 7), Reason::kRecordsAccepted);  // step 6 of it is not kept
  EXPECT_EQ(w.history.size(), 6u);
  EXPECT_TRUE(w.state.pending.empty());
  EXPECT_EQ(w.report(1, 3, 6, 7), Reason::kRecordsAccepted);
}

TEST(Recovery, DigestsAreKeptFromTheFirstReporterOnly) {
  World w;
  w.train();
  for (ConnectionId c : {1, 2}) {
    wire::Envelope e = w.records(c, 1, 0, 1);
    e.mutable_step_records()->mutable_records(0)->add_slots()->set_digest(5);
    w.say(c, e);
  }
  const auto batches = w.journal.batches(1, 0, 1);
  ASSERT_EQ(batches->size(), 2u);
  EXPECT_EQ((*batches)[0].records[0].slots_size() + (*batches)[1].records[0].slots_size(), 1);
}

TEST(Recovery, ASecondDeathDuringTheAnswersPreparesAgainAndOldAnswersCountForNothing) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.kill(3);
  EXPECT_EQ(w.promise_at(1, 9), Reason::kPromised);
  EXPECT_EQ(w.kill(1), Reason::kRegrouped);
  EXPECT_EQ(w.state.generation, 3u);
  EXPECT_EQ(w.journal.generations().at(2), GenerationState::kAbandoned);
  EXPECT_EQ(w.promise_at(2, 5), Reason::kStarted);
  EXPECT_EQ(w.started().resume().step(), 5u);  // the answer of the dead one is gone with it
}

TEST(Recovery, WithoutAnyRecordOfAStepBeforeTheResumePointTheTermEnds) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.kill(3);
  w.promise_at(1, 7);  // applied steps 5 and 6, reports them later
  w.promise_at(2, 6);  // got the state after step 6 from it
  ASSERT_EQ(w.state.run, RunState::kStarted);
  w.kill(1);  // takes the records of step 6 with it
  EXPECT_EQ(w.promise_at(2, 7), Reason::kEndedTerm);
  ASSERT_EQ(w.term_ends.size(), 1u);
  EXPECT_NE(w.term_ends[0].message.find("step 6"), std::string::npos) << w.term_ends[0].message;
  EXPECT_EQ(w.say(2, w.records(2, 2, 5, 6)), Reason::kIgnored);
}

TEST(Recovery, TheOnlyMemberThatAppliedAStepDiesAfterItsRecordWasJournalled) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.report(1, 2, 5, 7);
  w.kill(3);
  w.promise_at(1, 7);
  w.promise_at(2, 6);
  EXPECT_EQ(w.history.size(), 7u);
  w.kill(1);
  EXPECT_EQ(w.promise_at(2, 7), Reason::kStarted);  // the transfer was through
  EXPECT_EQ(w.started().resume().step(), 7u);
}

// The source died before it could hand the state over: the member that lags computes the step
// again.
TEST(Recovery, WhenTheOnlySourceDiesHalfWayTheRowsAreCutInPlace) {
  World w(small_options(3, 100));
  train_three(w, 6);
  w.kill(3);
  w.promise_at(1, 7);
  w.promise_at(2, 6);
  w.kill(1);
  EXPECT_EQ(w.promise_at(2, 6, 1), Reason::kStarted);
  EXPECT_EQ(w.started().resume().step(), 6u);
  const auto ledger = w.journal.load()->ledger;
  EXPECT_EQ(ledger[0].last->step, 6u);
  EXPECT_TRUE(ledger[1].rolled_back);
  EXPECT_EQ(ledger[2].first.step, 6u);
  EXPECT_EQ(w.report(2, 2, 6, 7), Reason::kRecordsAccepted);
  EXPECT_EQ(w.history.size(), 7u);
}

TEST(Recovery, AStepInTheHistoryIsRedoneInPlaceOnlyIfItsBitsAreTheSame) {
  for (const std::string numerics : {"exact", "fast"}) {
    Options options = small_options(3, 100);
    options.job.mutable_comm()->set_numerics(numerics);
    World w(options);
    train_three(w, 6);
    w.report(1, 2, 6, 7);
    w.kill(3);
    w.promise_at(1, 7);
    w.promise_at(2, 6);
    ASSERT_EQ(w.history.size(), 7u);
    w.kill(1);
    const Reason reason = w.promise_at(2, 6, 1);
    EXPECT_EQ(reason, numerics == "exact" ? Reason::kStarted : Reason::kEndedTerm);
    if (reason != Reason::kStarted) continue;
    EXPECT_EQ(w.state.completed, 6u);
    EXPECT_EQ(w.report(2, 2, 6, 8), Reason::kRecordsAccepted);
    EXPECT_EQ(w.state.completed, 8u);
    EXPECT_EQ(w.history.size(), 8u);  // step 6 is there once
  }
}

TEST(Recovery, AMemberThatNeverStartedTheLastGenerationIsNoSource) {
  World w(small_options(2, 100));
  w.train();
  w.report(1, 1, 0, 3);
  w.report(2, 1, 0, 3);
  EXPECT_EQ(w.join(3), Reason::kRegistered);
  EXPECT_EQ(w.kill(2), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1, 3}));
  w.promise_at(3, 9, 1);  // claims more than it can have
  EXPECT_EQ(w.promise_at(1, 3), Reason::kStarted);
  EXPECT_EQ(w.started().resume().step(), 3u);
  EXPECT_EQ(sources(w), std::vector<uint64_t>{1});
}

TEST(Recovery, AStoppedProcessThatWasDeclaredDeadComesBackAsANewMember) {
  World w(small_options(3, 100));
  train_three(w, 5);
  for (int i = 0; i < 52; ++i) {
    w.beat(1), w.beat(2);
    if (w.wait(100) != Reason::kNothingDue) break;
  }
  ASSERT_EQ(w.state.members.at(3).state, MemberState::kDead);
  w.promise_at(1, 5);
  w.promise_at(2, 5);
  EXPECT_EQ(w.say(3, w.records(3, 2, 5, 6)), Reason::kRefusedUnregistered);
  wire::Register m = World::registration(2);
  m.set_member(3);
  m.set_generation(1);
  EXPECT_EQ(w.join(13, m), Reason::kNewIdentity);
  EXPECT_EQ(w.sent(13).front().registered().member(), 4u);
  EXPECT_TRUE(w.state.planned);  // it may join
  EXPECT_EQ(w.state.planned->ranks, (std::vector<MemberId>{1, 2, 4}));
}

// A joiner may hold a state of a generation that was rolled back until it has the state of its
// source. Its answer says so, and nothing of it may come back.
TEST(Recovery, AStateOfARolledBackGenerationIsNoSourceWhateverItsMemberBecame) {
  World w(small_options(4, 100));
  w.train();
  w.kill(3);
  for (ConnectionId c : {1, 2, 4}) w.promise_at(c, c == 1 ? 5 : 4);  // generation 2 starts at 5
  w.kill(1);
  w.promise_at(2, 4, 1), w.promise_at(4, 4, 1);  // generation 3 goes back to 4
  ASSERT_EQ(w.started().resume().step(), 4u);
  ASSERT_TRUE(w.state.lineage.at(2).row.rolled_back);
  w.join(11, World::registration(0));
  ASSERT_EQ(w.kill(4), Reason::kRegrouped);
  w.promise_at(11, 5, 2, 5);
  ASSERT_EQ(w.promise_at(2, 4, 1), Reason::kStarted);  // generation 4, of 2 and the joiner
  ASSERT_EQ(w.started().resume().step(), 4u);
  w.join(12, World::registration(3));
  w.kill(2);
  w.promise(12);
  EXPECT_NE(w.promise_at(11, 5, 2, 5), Reason::kStarted);
}

// After a rollback the evaluations and the records of the steps that are made again come again.
TEST(Recovery, ARollbackForgetsEvaluationsAndRecordsAfterIt) {
  World w(small_options(3, 100));
  train_three(w, 24);
  w.report(1, 2, 24, 25);
  w.kill(3);
  w.promise_at(1, 25);
  w.promise_at(2, 24);
  ASSERT_EQ(w.say(1, eval_after(25, 3, 7)), Reason::kRecordsAccepted);
  ASSERT_EQ(w.report(1, 4, 25, 26), Reason::kRecordsAccepted);
  ASSERT_EQ(w.state.pending.count(25), 1u);
  w.kill(1);
  ASSERT_EQ(w.promise_at(2, 24, 1), Reason::kStarted);
  EXPECT_EQ(w.started().resume().step(), 24u);
  EXPECT_TRUE(w.state.evals.empty());
  EXPECT_TRUE(w.state.pending.empty());
  // In a new numbering of batches, made again with another evaluation's result.
  EXPECT_EQ(w.report(2, 2, 24, 25), Reason::kRecordsAccepted);
  EXPECT_EQ(w.say(2, eval_after(25, 3, 8)), Reason::kRecordsAccepted);
}

TEST(Recovery, HostileAnswersAreMalformed) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.kill(3);
  wire::Envelope e;
  wire::Promise* m = e.mutable_promise();
  m->set_generation(2);
  m->set_has_state(true);
  m->mutable_applied()->set_step(101);
  EXPECT_EQ(w.say(1, e), Reason::kRefusedMalformed);
  m->mutable_applied()->set_step(5);
  m->mutable_applied()->set_phase(9);
  EXPECT_EQ(w.say(1, e), Reason::kRefusedMalformed);
  m->mutable_applied()->set_phase(0);
  m->set_lived(2);
  EXPECT_EQ(w.say(1, e), Reason::kRefusedMalformed);
  m->set_lived(1);
  m->mutable_since()->set_step(6);
  EXPECT_EQ(w.say(1, e), Reason::kRefusedMalformed);
  EXPECT_EQ(w.promise_at(1, 5), Reason::kPromised);
}

TEST(Recovery, ACheckpointOfAnOlderWriterCountsIfItsRowCoversItElseItIsDropped) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.kill(3);
  w.promise_at(1, 5);
  w.promise_at(2, 5);
  EXPECT_EQ(w.checkpoint(1, 4, false, "", 1), Reason::kCheckpointAccepted);
  EXPECT_EQ(w.checkpoint(1, 6, false, "", 1), Reason::kCheckpointVoid);
  EXPECT_EQ(w.sent(1).back().checkpoint_ack().name(), "step-0000000006-g1-m1");
  EXPECT_EQ(w.sent(1).back().checkpoint_ack().drop_size(), 0);
  w.report(1, 2, 5, 7);
  EXPECT_EQ(w.checkpoint(1, 6), Reason::kCheckpointAccepted);
  ASSERT_EQ(w.sent(1).back().checkpoint_ack().drop_size(), 1);
  EXPECT_EQ(w.sent(1).back().checkpoint_ack().drop(0), "step-0000000006-g1-m1");
  EXPECT_EQ(w.state.checkpoints.size(), 2u);
}

TEST(Recovery, ACheckpointOfAStepThatOnlyItsDeadWriterAppliedLeavesTheLineage) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.report(1, 1, 5, 6);
  EXPECT_EQ(w.checkpoint(1, 6), Reason::kCheckpointAccepted);
  w.kill(1);
  w.promise_at(2, 5);
  EXPECT_EQ(w.promise_at(3, 5), Reason::kStarted);
  EXPECT_TRUE(w.state.checkpoints.empty());
  EXPECT_EQ(w.journal.load()->checkpoints.at(0).state, CheckpointState::kRolledBack);
  w.report(2, 2, 5, 7);
  EXPECT_EQ(w.checkpoint(2, 6), Reason::kCheckpointAccepted);
  ASSERT_EQ(w.sent(2).back().checkpoint_ack().drop_size(), 1);
  EXPECT_EQ(w.sent(2).back().checkpoint_ack().drop(0), "step-0000000006-g1-m1");
}

TEST(Recovery, AnEvaluationWhoseResultIsKnownIsNotMadeAgain) {
  World w(small_options(2, 100));
  w.train();
  w.report(1, 1, 0, 25);
  w.report(2, 1, 0, 25);
  EXPECT_EQ(w.say(1, eval_after(25, 2)), Reason::kRecordsAccepted);
  w.kill(2);
  EXPECT_EQ(w.say(1, promise_after(25, Phase::kEval)), Reason::kStarted);
  EXPECT_EQ(w.started().resume().phase(), static_cast<uint32_t>(Phase::kTrain));
}

TEST(Recovery, AnEvaluationThatNobodyReportedIsMadeAgainWhateverTheAnswersSay) {
  World w(small_options(2, 100));
  w.train();
  w.report(1, 1, 0, 25);
  w.report(2, 1, 0, 25);
  w.kill(2);
  EXPECT_EQ(w.say(1, promise_after(25, Phase::kTrain)), Reason::kStarted);
  EXPECT_EQ(w.started().resume().step(), 25u);
  EXPECT_EQ(w.started().resume().phase(), static_cast<uint32_t>(Phase::kEval));
}

TEST(Recovery, TheFirstReportOfAnEvaluationCountsAndTheOthersMustAgree) {
  World w(small_options(2, 100));
  w.train();
  w.report(1, 1, 0, 25);
  w.report(2, 1, 0, 25);
  EXPECT_EQ(w.say(2, eval_after(25, 2, 7)), Reason::kRecordsAccepted);
  EXPECT_EQ(w.say(1, eval_after(25, 2, 7)), Reason::kRecordsAccepted);
  ASSERT_EQ(w.journal.load()->evals.size(), 1u);
  EXPECT_EQ(w.journal.load()->evals[0].correct, 7u);
  EXPECT_EQ(w.say(1, eval_after(25, 3, 8)), Reason::kEndedCorruption);
}

TEST(Recovery, AnImpossibleEvaluationIsRefused) {
  World w(small_options(2, 100));
  w.train();
  EXPECT_EQ(w.say(1, eval_after(101, 1)), Reason::kRefusedMalformed);
  EXPECT_EQ(w.say(1, eval_after(25, 1, 11)), Reason::kRefusedMalformed);
  // A name stands in lines of JSON and in labels as it is.
  wire::Envelope e = eval_after(25, 1);
  wire::Metric* metric = e.mutable_step_records()->mutable_evals(0)->add_metrics();
  for (const char* name : {"", "a\"b", "a\n", "caf\xc3\xa9"}) {
    metric->set_name(name);
    EXPECT_EQ(w.say(1, e), Reason::kRefusedMalformed) << name;
  }
  e.mutable_step_records()->mutable_evals(0)->clear_metrics();
  for (size_t i = 0; i <= kMetricsOfAnEvaluation; ++i)
    e.mutable_step_records()->mutable_evals(0)->add_metrics()->set_name("hit");
  EXPECT_EQ(w.say(1, e), Reason::kRefusedMalformed);
}

}  // namespace
}  // namespace lockstep::coordinator
