#include <set>

#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

TEST(Decide, AllRegisteredIsPreparedAllPromisedIsStarted) {
  World w;
  EXPECT_EQ(w.join(1), Reason::kRegistered);
  EXPECT_EQ(w.join(2), Reason::kPrepared);
  EXPECT_EQ(w.sent(1).back().prepare().members_size(), 2);
  EXPECT_EQ(w.promise(1), Reason::kPromised);
  EXPECT_EQ(w.promise(2), Reason::kStarted);
  const wire::Envelope pushed = w.sent(2).back();
  EXPECT_EQ(pushed.term(), 1u);
  EXPECT_EQ(pushed.generation(), 1u);
  EXPECT_TRUE(pushed.start().source().fresh());
  EXPECT_EQ(pushed.start().total_steps(), 4u);
  EXPECT_EQ(pushed.start().writer(), 1u);
  EXPECT_EQ(pushed.start().members(0).slots().end(), 2u);
  EXPECT_EQ(pushed.start().members(1).slots().begin(), 2u);
  EXPECT_EQ(pushed.start().buckets().bounds_size(), 2);
  EXPECT_FALSE(w.journal.load()->identity.empty());
}

// Every message names all members: with an envelope each, memory would grow with their square.
TEST(Decide, WhatAllAreToldIsOneEnvelope) {
  World w;
  const auto envelopes = [&w] {
    std::set<const wire::Envelope*> found;
    int sends = 0;
    for (const Action& action : w.actions) {
      const auto* send = std::get_if<Send>(&action);
      const bool is_to_all =
          send != nullptr && (send->envelope->has_prepare() || send->envelope->has_start());
      if (!is_to_all) continue;
      found.insert(send->envelope.get());
      ++sends;
    }
    EXPECT_EQ(sends, 2);
    return found.size();
  };
  w.join(1);
  ASSERT_EQ(w.join(2), Reason::kPrepared);
  EXPECT_EQ(envelopes(), 1u);
  w.promise(1);
  ASSERT_EQ(w.promise(2), Reason::kStarted);
  EXPECT_EQ(envelopes(), 1u);
}

TEST(Decide, AFinishedRunEndsWithZeroOnceAllHaveLeftAndTheCheckpointIsThere) {
  World w;
  w.train();
  EXPECT_EQ(w.report(1, 1, 0, 4), Reason::kRecordsAccepted);
  EXPECT_TRUE(w.history.empty());
  EXPECT_EQ(w.report(2, 1, 0, 4), Reason::kRecordsAccepted);
  EXPECT_EQ(w.history.size(), 4u);
  EXPECT_EQ(w.checkpoint(1, 4, true), Reason::kCheckpointAccepted);
  EXPECT_EQ(w.leave(1, wire::Leave::FINISHED, 4), Reason::kLeft);
  EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 4), Reason::kEndedFinished);
  EXPECT_EQ(w.sent(1).back().goodbye().exit_code(), 0u);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 0);
  EXPECT_EQ(w.journal.generations().at(1), GenerationState::kClosed);
  EXPECT_EQ(w.journal.load()->ledger.back().last->step, 4u);
}

TEST(Decide, NobodyLeavesWithoutTheFinalCheckpoint) {
  World w;
  w.train();
  w.report(1, 1, 0, 4);
  w.report(2, 1, 0, 4);
  w.leave(1, wire::Leave::FINISHED, 4);
  EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 4), Reason::kEndedNoCheckpoint);
  EXPECT_EQ(w.ends[0].exit_code, 70);
}

TEST(Decide, AStopIsPushedToAllAndEndsWith75) {
  World w;
  w.train();
  EXPECT_EQ(w.happen(StopSignal{"signal SIGTERM"}), Reason::kStopRequested);
  EXPECT_TRUE(w.sent(1).back().has_stop());
  EXPECT_TRUE(w.sent(2).back().has_stop());
  EXPECT_EQ(w.happen(StopSignal{"again"}), Reason::kAlreadyCounted);
  w.report(1, 1, 0, 2);
  w.report(2, 1, 0, 2);
  w.checkpoint(1, 2, true);
  w.leave(2, wire::Leave::STOPPED, 2);
  EXPECT_EQ(w.leave(1, wire::Leave::STOPPED, 2), Reason::kEndedStopped);
  EXPECT_EQ(w.ends[0].exit_code, 75);
}

TEST(Decide, AStopBeforeTheStartEndsAtOnceWith75) {
  World w;
  w.join(1);
  EXPECT_EQ(w.happen(StopSignal{"signal SIGINT"}), Reason::kEndedStopped);
  EXPECT_EQ(w.ends[0].exit_code, 75);
}

TEST(Decide, AStopThatTakesLongerThanTheGraceTimeEndsWith70) {
  World w;
  w.options.lease_ms = 1'000'000;
  w.train();
  w.happen(StopSignal{"signal SIGTERM"});
  EXPECT_EQ(w.wait(11'000), Reason::kEndedGracePassed);
}

TEST(Decide, AMessageOfAnOlderTermIsRefusedAndTheSenderIsToldThePresent) {
  Beginning b = first_term();
  b.term = 3;
  World w(small_options(), b);
  w.train();
  wire::Envelope e = w.records(1, 1, 0, 1);
  e.set_term(2);
  EXPECT_EQ(w.say(1, e), Reason::kRefusedStaleTerm);
  EXPECT_EQ(w.state.members.at(1).acked_batch, 0u);
  EXPECT_TRUE(w.sent(1).back().has_start());
  EXPECT_EQ(w.sent(1).back().term(), 3u);
  e.set_term(4);
  EXPECT_EQ(w.say(1, e), Reason::kRefusedFuture);
}

TEST(Decide, RecordsThatNoRowCoversAreAcknowledgedAndNotKept) {
  Beginning b = first_term();
  b.generation = 6;
  World w(small_options(), b);
  w.train();
  EXPECT_EQ(w.state.generation, 7u);
  EXPECT_EQ(w.report_of(1, 1, 1, 0, 1), Reason::kRecordsVoid);
  EXPECT_EQ(w.report_of(6, 1, 2, 0, 1), Reason::kRecordsVoid);
  EXPECT_EQ(w.sent(1).back().records_ack().batch(), 2u);
  EXPECT_EQ(w.report_of(8, 1, 3, 0, 1), Reason::kRefusedFuture);
  EXPECT_TRUE(w.state.pending.empty());
  EXPECT_EQ(w.report(1, 3, 0, 1), Reason::kRecordsAccepted);
}

TEST(Decide, WorkBeforeTheStartIsRefused) {
  World w;
  w.join(1);
  w.join(2);
  EXPECT_EQ(w.report(1, 1, 0, 1), Reason::kRefusedFuture);
}

TEST(Decide, OnlyPromisesOfThePreparedGenerationCountAndEachOnce) {
  World w(small_options(4));
  w.train();
  ASSERT_EQ(w.kill(4), Reason::kRegrouped);
  EXPECT_EQ(w.promise_at(1, 0), Reason::kPromised);
  EXPECT_EQ(w.promise_at(1, 0), Reason::kAlreadyCounted);
  w.promise_at(2, 0);
  EXPECT_EQ(w.wait_alive(4'500), Reason::kNothingDue);
  EXPECT_EQ(w.wait_alive(1'500), Reason::kEvictedUnpromised);
  EXPECT_EQ(w.state.generation, 3u);
  EXPECT_EQ(w.journal.generations().at(2), GenerationState::kAbandoned);
  EXPECT_EQ(w.promise(1, 2), Reason::kRefusedStaleGeneration);  // late: for g2
  EXPECT_TRUE(w.sent(1).back().has_prepare());
  EXPECT_EQ(w.promise(3, 2), Reason::kRefusedUnregistered);  // has to register again
  EXPECT_EQ(w.promise_at(1, 0), Reason::kPromised);
  EXPECT_EQ(w.promise_at(2, 0), Reason::kStarted);
  EXPECT_EQ(w.promise_at(2, 0), Reason::kAlreadyCounted);
  EXPECT_TRUE(w.sent(2).back().has_start());
}

TEST(Decide, AWorkerThatDoesNotAnswerAtTheFirstStartEndsTheRunWhenItsTimeIsOver) {
  World w;
  w.join(1);
  w.join(2);
  w.promise(1);
  EXPECT_EQ(w.wait_alive(6'000), Reason::kAwaitsReplacement);
  EXPECT_EQ(w.state.run, RunState::kGathering);
  EXPECT_EQ(w.wait_alive(60'000), Reason::kEndedMissingWorkers);
  EXPECT_NE(w.ends[0].message.find("1 of 2"), std::string::npos) << w.ends[0].message;
}

TEST(Decide, AMemberThatRegistersAgainGetsTheSameStartAgain) {
  World w;
  w.train();
  w.happen(ConnectionClosed{2, "reset"});
  wire::Register again = World::registration(1);
  again.set_member(2);
  again.set_generation(1);
  EXPECT_EQ(w.join(9, again), Reason::kReconnected);
  const auto sent = w.sent(9);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].registered().member(), 2u);
  EXPECT_EQ(sent[1].start().writer(), 1u);
  EXPECT_EQ(w.wait(4'000), Reason::kNothingDue);
  again.set_generation(9);
  EXPECT_EQ(w.join(10, again), Reason::kRefusedFuture);
}

TEST(Decide, ADuplicateBatchIsAckedAgainAndCountsOnce) {
  World w;
  w.train();
  w.report(1, 1, 0, 2);
  EXPECT_EQ(w.report(1, 1, 0, 2), Reason::kAlreadyCounted);
  EXPECT_EQ(w.sent(1).back().records_ack().batch(), 1u);
  EXPECT_EQ(w.report(1, 3, 2, 3), Reason::kRefusedGap);
  w.report(2, 1, 0, 2);
  EXPECT_EQ(w.history.size(), 2u);
}

// A step without a record would be one of which nothing is proven.
TEST(Decide, ARecordThatLeavesOutAStepEndsTheRun) {
  World w;
  w.train();
  EXPECT_EQ(w.report(1, 1, 0, 1), Reason::kRecordsAccepted);
  EXPECT_EQ(w.report(1, 2, 2, 3), Reason::kEndedCorruption);
  EXPECT_NE(w.ends.back().message.find("step 1 is next"), std::string::npos);
}

// A suspicion by a member of an older generation blames no member of the present one.
TEST(Decide, ASuspicionOfAnOlderGenerationIsRefused) {
  World w(small_options(4, 100));
  w.train();
  ASSERT_EQ(w.kill(4), Reason::kRegrouped);
  for (ConnectionId c : {1, 2, 3}) w.promise_at(c, 0);
  ASSERT_EQ(w.state.run, RunState::kStarted);
  wire::Envelope late;
  late.set_generation(1);
  late.mutable_peer_suspect()->set_member(3);
  late.mutable_peer_suspect()->set_what("reset by peer");
  EXPECT_EQ(w.say(1, late), Reason::kRefusedStaleGeneration);
  EXPECT_TRUE(w.sent(1).back().has_start());
  late.clear_peer_suspect();
  late.mutable_leave()->set_reason(wire::Leave::STOPPED);
  EXPECT_EQ(w.say(1, late), Reason::kRefusedStaleGeneration);
  EXPECT_EQ(w.wait_alive(10'000), Reason::kNothingDue);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1, 2, 3}));
}

TEST(Decide, RanksThatDisagreeAboutAStepEndTheRun) {
  World w;
  w.train();
  w.report(1, 1, 0, 1, 7);
  EXPECT_EQ(w.report(2, 1, 0, 1, 8), Reason::kEndedCorruption);
  EXPECT_TRUE(w.history.empty());
}

TEST(Decide, AnotherFingerprintIsRefusedWithBothLines) {
  World w;
  w.join(1);
  wire::Register other = World::registration(1);
  other.mutable_fingerprint()->set_lines(0, "isa=avx512");
  EXPECT_EQ(w.join(2, other), Reason::kEndedFingerprint);
  EXPECT_EQ(w.ends[0].exit_code, 78);
  EXPECT_NE(w.ends[0].message.find("avx512 there"), std::string::npos);
  EXPECT_NE(w.ends[0].message.find("isa is avx2 in this run"), std::string::npos);
  EXPECT_EQ(w.sent(2).back().goodbye().exit_code(), 78u);
}

TEST(Decide, OtherDataOrAnotherLayoutIsRefused) {
  World w;
  wire::Register other = World::registration(0);
  other.mutable_facts()->set_train_fingerprint("bb");
  EXPECT_EQ(w.join(1, other), Reason::kEndedFacts);
  EXPECT_EQ(w.ends[0].exit_code, 65);
  World v;
  v.join(1);
  other = World::registration(1);
  other.set_flat_elements(128);
  EXPECT_EQ(v.join(2, other), Reason::kEndedLayout);
}

TEST(Decide, StrangersAreTurnedAwayAndSurplusWorkersWait) {
  World w;
  w.train();
  EXPECT_EQ(w.report(77, 1, 0, 1), Reason::kRefusedUnregistered);
  EXPECT_EQ(w.join(3), Reason::kRegistered);
  EXPECT_EQ(w.sent(3).back().registered().member(), 3u);
  EXPECT_FALSE(w.state.planned);  // the run has its workers
  wire::Register other = World::registration(5);
  other.set_run_id("another");
  EXPECT_EQ(w.join(4, other), Reason::kRefusedOtherRun);
  EXPECT_EQ(w.checkpoint(2, 1), Reason::kRefusedNotWriter);
  EXPECT_TRUE(w.ends.empty());
}

}  // namespace
}  // namespace lockstep::coordinator
