// A death, and what goes on after it.
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

std::vector<uint64_t> sources(const World& w) {
  const auto& members = w.started().source().members();
  return {members.begin(), members.end()};
}

// Three workers, `steps` reported by all.
void train_three(World& w, Step steps) {
  w.train();
  for (ConnectionId c = 1; c <= 3 && steps > 0; ++c) w.report(c, 1, 0, steps);
}

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

// The source died before it could hand the state over: the one behind computes the step again.
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

TEST(Recovery, AllKilledWithReplacementsToComeTheNextTermBegins) {
  World w(small_options(2, 100));
  w.train();
  EXPECT_EQ(w.kill(1, true), Reason::kRegrouped);
  EXPECT_EQ(w.kill(2, true), Reason::kEndedTerm);
  EXPECT_TRUE(w.ends.empty());
  EXPECT_EQ(w.journal.generations().at(1), GenerationState::kClosed);
  EXPECT_EQ(w.join(9), Reason::kIgnored);  // the next term is asked
}

TEST(Recovery, AfterAFailureOfTheLastOneTheProofOfItsEndDecides) {
  for (const bool will_restart : {true, false}) {
    World w(small_options(1, 100));
    w.train();
    w.hello(50);
    EXPECT_EQ(w.leave(1, wire::Leave::FAILED, 0, Code::kInternal, "disk full"),
              Reason::kAwaitsProof);
    EXPECT_EQ(w.exit(50, 1000, 70, 0, "", will_restart),
              will_restart ? Reason::kEndedTerm : Reason::kEndedDeath);
  }
}

TEST(Recovery, AStoppedProcessOfAnEarlierTermIsAwaitedWhenTheLastWorkerDies) {
  Beginning b = first_term();
  b.term = 2;
  World w(small_options(1, 100), b);
  w.join(1);
  w.promise(1);
  w.hello(World::kAgent, {1000, 4711});  // the second one is not heard of in this term
  EXPECT_EQ(w.kill(1), Reason::kAwaitsProof);
  World v = w;
  EXPECT_EQ(v.exit(World::kAgent, 4711, -1, 9), Reason::kEndedDeath);
  EXPECT_EQ(w.wait(w.options.lease_ms + 1'000), Reason::kEndedTerm);
  EXPECT_TRUE(w.ends.empty());
}

TEST(Recovery, ANewTermHasNoSourcesWhateverItsMembersClaim) {
  Beginning b = first_term();
  b.term = 2;
  b.generation = 5;
  b.base = {10, Phase::kTrain};
  b.base_checkpoint = "/run/checkpoints/step-0000000010-g5-m1";
  World w(small_options(2, 100), b);
  wire::Register m = World::registration(0);
  m.set_member(1);
  m.set_generation(5);
  m.set_has_state(true);
  m.mutable_applied()->set_step(14);
  EXPECT_EQ(w.join(1, m), Reason::kNewIdentity);
  w.join(2);
  w.promise_at(1, 14, 5, 10);
  EXPECT_EQ(w.promise(2), Reason::kStarted);
  EXPECT_EQ(w.started().resume().step(), 10u);
  EXPECT_EQ(w.started().source().checkpoint_path(), b.base_checkpoint);
}

TEST(Recovery, ALaterTermBeginsWithFewerWorkersAfterALeaseOfWaiting) {
  Beginning b = first_term();
  b.term = 2;
  World w(small_options(3, 100), b);
  w.join(1);
  w.join(2);
  EXPECT_EQ(w.wait_alive(5'000), Reason::kNothingDue);
  EXPECT_EQ(w.wait_alive(1'000), Reason::kPrepared);
  EXPECT_EQ(w.state.ranks.size(), 2u);
}

TEST(Recovery, ALaterTermWithTooFewWorkersEndsWith75IfItCanGoOnLater) {
  for (const bool has_checkpoint : {true, false}) {
    Beginning b = first_term();
    b.term = 2;
    if (has_checkpoint) b.checkpoints.push_back({"step-0000000001-g1-m1", 1, 1, 1, {}, {}});
    World w(small_options(3, 100), b);
    w.options.min_workers = 2;
    w.join(1);
    EXPECT_EQ(w.wait_alive(w.options.min_wait_ms + 1'000), Reason::kEndedTooFew);
    EXPECT_EQ(w.ends[0].exit_code, has_checkpoint ? 75 : 70);
  }
}

TEST(Recovery, BelowTheMinimumTheRestWritesACheckpointAndTheNextTermWaits) {
  Options options = small_options(3, 100);
  options.min_workers = 3;
  World w(options);
  train_three(w, 5);
  w.kill(3);
  w.promise_at(1, 5);
  EXPECT_EQ(w.promise_at(2, 5), Reason::kStarted);
  EXPECT_TRUE(w.sent(1).back().has_stop());
  w.report(1, 2, 5, 6);
  w.report(2, 2, 5, 6);
  w.checkpoint(1, 6, true);
  w.leave(1, wire::Leave::STOPPED, 6);
  EXPECT_EQ(w.leave(2, wire::Leave::STOPPED, 6), Reason::kEndedTerm);
  EXPECT_TRUE(w.ends.empty());
}

TEST(Recovery, AStopIsPushedAgainAfterEveryStart) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.happen(StopSignal{"SIGTERM"});
  w.kill(3);
  EXPECT_EQ(w.happen(StopSignal{"again"}), Reason::kAlreadyCounted);
  w.promise_at(1, 5);
  EXPECT_EQ(w.promise_at(2, 5), Reason::kStarted);
  EXPECT_TRUE(w.sent(1).back().has_stop());
  EXPECT_TRUE(w.sent(2).back().has_stop());
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

TEST(Recovery, AnEvaluationWhoseResultIsKnownIsNotMadeAgain) {
  World w(small_options(2, 100));
  w.train();
  w.report(1, 1, 0, 25);
  w.report(2, 1, 0, 25);
  wire::Envelope e;
  e.mutable_eval()->set_step(25);
  e.mutable_eval()->set_samples(10);
  EXPECT_EQ(w.say(1, e), Reason::kEvalAccepted);
  w.kill(2);
  wire::Envelope p;
  p.mutable_promise()->set_generation(2);
  p.mutable_promise()->set_has_state(true);
  p.mutable_promise()->set_lived(1);
  p.mutable_promise()->mutable_applied()->set_step(25);
  p.mutable_promise()->mutable_applied()->set_phase(static_cast<uint32_t>(Phase::kEval));
  EXPECT_EQ(w.say(1, p), Reason::kStarted);
  EXPECT_EQ(w.started().resume().phase(), static_cast<uint32_t>(Phase::kTrain));
}

}  // namespace
}  // namespace lockstep::coordinator
