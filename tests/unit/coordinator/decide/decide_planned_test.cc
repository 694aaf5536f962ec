// Joins and leaves without a pause.
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

wire::Envelope last_planned(const World& w, ConnectionId c) {
  for (const wire::Envelope& e : w.sent(c)) {
    if (e.has_planned()) return e;
  }
  return {};
}

// Two workers at step 3, a third one planned to join as generation 2.
void plan_a_join(World& w) {
  w.train();
  w.report(1, 1, 0, 3);
  w.report(2, 1, 0, 3);
  w.scale(3);
  EXPECT_EQ(w.join(3), Reason::kRegistered);
}

TEST(Planned, AScaleThatNobodyCouldFollowIsRefused) {
  World w(small_options(2, 100));
  EXPECT_EQ(w.scale(3), Reason::kCommandRefused);
  EXPECT_EQ(w.state.wanted_workers, 0u);
}

TEST(Planned, AReplacementIsPlannedInWithoutAPause) {
  World w(small_options(3, 100));
  w.train();
  w.kill(3, true);
  w.promise_at(1, 0);
  w.promise_at(2, 0);
  EXPECT_EQ(w.join(4), Reason::kRegistered);
  EXPECT_EQ(w.state.run, RunState::kStarted);
  EXPECT_EQ(w.state.generation, 2u);
  const wire::Envelope to_member = last_planned(w, 1);
  const wire::Envelope to_joiner = last_planned(w, 4);
  EXPECT_EQ(to_member.generation(), 3u);
  EXPECT_EQ(to_joiner.generation(), 3u);
  EXPECT_FALSE(to_member.planned().next().has_resume());
  EXPECT_EQ(to_member.planned().next().members_size(), 3);
  EXPECT_EQ(to_member.planned().next().source().members_size(), 2);
  EXPECT_EQ(w.journal.generations().at(3), GenerationState::kPlanned);
}

TEST(Planned, TheFirstReportOfTheSwitchClosesTheRowAndTheOthersAreCheckedAgainstIt) {
  World w(small_options(2, 100));
  plan_a_join(w);
  EXPECT_EQ(w.switched(1, 2, 5), Reason::kSwitched);
  EXPECT_EQ(w.state.generation, 2u);
  EXPECT_EQ(w.switched(3, 2, 5), Reason::kAlreadyCounted);
  const auto ledger = w.journal.load()->ledger;
  EXPECT_EQ(ledger[0].last->step, 5u);
  EXPECT_EQ(ledger[1].first.step, 5u);
  EXPECT_EQ(w.journal.generations().at(1), GenerationState::kClosed);
  EXPECT_EQ(w.report_of(1, 2, 2, 3, 5), Reason::kRecordsAccepted);  // before its own switch
  EXPECT_EQ(w.history.size(), 5u);
  EXPECT_EQ(w.switched(2, 2, 5), Reason::kAlreadyCounted);
  EXPECT_EQ(w.report_of(1, 1, 2, 3, 5), Reason::kRecordsAccepted);
  for (ConnectionId c : {1, 2}) w.report(c, 3, 5, 6);
  EXPECT_EQ(w.history.size(), 5u);
  w.report(3, 1, 5, 6);
  EXPECT_EQ(w.history.size(), 6u);
}

TEST(Planned, AMemberThatSaysItSwitchedElsewhereEndsTheRun) {
  World w(small_options(2, 100));
  plan_a_join(w);
  w.switched(1, 2, 5);
  EXPECT_EQ(w.switched(2, 2, 6), Reason::kEndedCorruption);
}

TEST(Planned, ALostReportOfTheSwitchIsMadeUpForByARegistration) {
  World w(small_options(2, 100));
  plan_a_join(w);
  w.happen(ConnectionClosed{1, "reset"});
  wire::Register m = World::registration(0);
  m.set_member(1);
  m.set_generation(2);
  m.mutable_since()->set_step(5);
  w.join(11, m);
  EXPECT_EQ(w.state.source_generation, 2u);
  EXPECT_EQ(w.state.resume.step, 5u);
}

TEST(Planned, ADeathCancelsTheChangeIfNobodyLivedInIt) {
  World w(small_options(2, 100));
  plan_a_join(w);
  EXPECT_EQ(w.kill(2), Reason::kRegrouped);
  EXPECT_EQ(w.state.generation, 3u);
  EXPECT_EQ(w.journal.generations().at(2), GenerationState::kPlanned);  // it is not known yet
  w.promise(3);
  EXPECT_EQ(w.promise_at(1, 4, 1), Reason::kStarted);
  EXPECT_EQ(w.journal.generations().at(2), GenerationState::kAbandoned);
  EXPECT_EQ(w.started().resume().step(), 4u);
  EXPECT_EQ(w.switched(1, 2, 5), Reason::kRefusedStaleGeneration);
}

TEST(Planned, ADeathAfterTheSwitchThatNobodyReportedKeepsIt) {
  World w(small_options(2, 100));
  plan_a_join(w);
  EXPECT_EQ(w.kill(2), Reason::kRegrouped);
  EXPECT_EQ(w.promise_at(1, 6, 2, 5), Reason::kPromised);  // it lived in generation 2
  EXPECT_EQ(w.promise_at(3, 5, 2, 5), Reason::kStarted);
  const auto ledger = w.journal.load()->ledger;
  ASSERT_EQ(ledger.size(), 3u);
  EXPECT_EQ(ledger[0].last->step, 5u);
  EXPECT_EQ(ledger[1].first.step, 5u);
  EXPECT_EQ(ledger[1].last->step, 6u);
  EXPECT_EQ(ledger[2].first.step, 6u);
  EXPECT_EQ(w.started().source().members_size(), 1);
}

TEST(Planned, AMemberThatWasStillAtTheBoundaryHoldsTheStateToo) {
  World w(small_options(2, 100));
  plan_a_join(w);
  w.switched(1, 2, 5);
  EXPECT_EQ(w.kill(3), Reason::kRegrouped);
  w.promise_at(1, 5, 2, 5);
  EXPECT_EQ(w.promise_at(2, 5, 1, 0), Reason::kStarted);  // its barrier broke
  EXPECT_EQ(w.started().source().members_size(), 2);
}

TEST(Planned, AJoinerThatDiesBeforeTheSwitchIsPreparedAway) {
  World w(small_options(2, 100));
  plan_a_join(w);
  EXPECT_EQ(w.kill(3), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1, 2}));
}

TEST(Planned, AWaitingWorkerThatDiesStopsNobody) {
  World w(small_options(2, 100));
  w.train();
  w.join(3);
  EXPECT_EQ(w.kill(3), Reason::kStandbyDied);
  EXPECT_EQ(w.state.generation, 1u);
}

TEST(Planned, ScalingDownLetsTheLastRanksGoOnceAllAreOverTheBoundary) {
  World w(small_options(3, 100));
  w.hello(World::kAgent, {1000, 1001, 1002});
  w.train();
  EXPECT_EQ(w.scale(2), Reason::kCommandDone);
  EXPECT_TRUE(w.sent(World::kCommand).back().command_answer().ok());
  EXPECT_EQ(w.sent(World::kAgent).back().set_workers().workers(), 2u);
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(w.state.planned->ranks, (std::vector<MemberId>{1, 2}));
  EXPECT_EQ(w.switched(1, 2, 4), Reason::kSwitched);
  EXPECT_EQ(w.drained(3, 4, 1), Reason::kDrained);
  EXPECT_TRUE(w.sent(3).empty());  // member 2 is not known to be over it
  w.switched(2, 2, 4);
  EXPECT_EQ(w.sent(3).back().goodbye().exit_code(), 0u);
  EXPECT_EQ(w.state.members.at(3).state, MemberState::kGone);
  EXPECT_EQ(w.exit(World::kAgent, 1002, 0, 0), Reason::kIgnored);
}

TEST(Planned, ALeaverThatIsReadyProvesNoSwitchAndIsNeededAgainAfterADeath) {
  World w(small_options(3, 100));
  w.train();
  w.scale(2);
  EXPECT_EQ(w.drained(3, 4, 1), Reason::kDrained);
  EXPECT_EQ(w.state.source_generation, 1u);
  World v = w;
  EXPECT_EQ(v.kill(2), Reason::kRegrouped);  // before the others were over the boundary
  EXPECT_EQ(v.state.ranks, (std::vector<MemberId>{1, 3}));
  v.promise_at(1, 3);
  EXPECT_EQ(v.promise_at(3, 4), Reason::kStarted);
  EXPECT_EQ(v.started().resume().step(), 4u);
  EXPECT_FALSE(v.state.planned);  // two are left, two are wanted
  w.switched(1, 2, 4);
  EXPECT_TRUE(w.sent(3).empty());
  w.switched(2, 2, 4);
  EXPECT_EQ(w.sent(3).back().goodbye().exit_code(), 0u);
}

TEST(Planned, ALeaverThatDiesAtTheBoundaryWhereOthersWaitForItIsADeathLikeAnyOther) {
  World w(small_options(3, 100));
  w.train();
  w.scale(2);
  w.switched(1, 2, 4);
  EXPECT_EQ(w.kill(3), Reason::kRegrouped);
  w.promise_at(1, 4, 2, 4);
  EXPECT_EQ(w.promise_at(2, 4, 1, 0), Reason::kStarted);
  EXPECT_EQ(w.started().source().members_size(), 2);
}

TEST(Planned, ALeaverThatIsLostAtTheBoundaryCanBeNamedByWhoWaitsForIt) {
  World w(small_options(3, 100));
  w.train();
  w.scale(2);
  w.switched(1, 2, 4);
  wire::Envelope e;
  e.set_generation(1);
  e.mutable_peer_suspect()->set_member(3);
  EXPECT_EQ(w.say(2, e), Reason::kSuspected);
  EXPECT_EQ(w.wait_alive(3'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1, 2}));
}

TEST(Planned, TheWishForWorkersOutlivesTheTerm) {
  World w(small_options(2, 100));
  w.train();
  w.scale(4);
  Beginning b = first_term();
  b.settings["workers"] = "5";
  EXPECT_EQ(begin_state(b, 0).wanted_workers, 5u);
  EXPECT_EQ(w.scale(5), Reason::kCommandRefused);  // there are four slots
  EXPECT_EQ(w.scale(0), Reason::kCommandRefused);
  EXPECT_FALSE(w.sent(World::kCommand).back().command_answer().ok());
}

TEST(Planned, NoChangeWhileAStopIsPendingOrAMemberIsAway) {
  World w(small_options(2, 100));
  w.train();
  w.scale(3);
  w.happen(ConnectionClosed{1, "reset"});
  w.join(3);
  EXPECT_FALSE(w.state.planned);
  wire::Register m = World::registration(0);
  m.set_member(1);
  w.join(11, m);
  EXPECT_TRUE(w.state.planned);
  World v(small_options(2, 100));
  v.train();
  v.happen(StopSignal{"SIGTERM"});
  v.scale(3);
  v.join(3);
  EXPECT_FALSE(v.state.planned);
}

TEST(Planned, APreemptedWorkerIsSentAwayWithTheWishForAnotherOne) {
  World w(small_options(3, 100));
  w.hello(World::kAgent, {1000, 1001, 1002});
  w.train();
  wire::Envelope preempted;
  preempted.mutable_drain()->set_reason("SIGTERM");
  EXPECT_EQ(w.say(3, preempted), Reason::kDrainRequested);
  ASSERT_TRUE(w.state.planned);
  w.switched(1, 2, 4);
  EXPECT_EQ(w.drained(3, 4, 1), Reason::kDrained);
  w.switched(2, 2, 4);
  EXPECT_EQ(w.sent(3).back().goodbye().exit_code(), 75u);
}

TEST(Planned, AStopThatWinsOverAChangeEndsTheRun) {
  World w(small_options(2, 100));
  plan_a_join(w);
  w.happen(StopSignal{"SIGTERM"});
  w.report(1, 2, 3, 4);
  w.report(2, 2, 3, 4);
  w.checkpoint(1, 4, true);
  w.leave(1, wire::Leave::STOPPED, 4);
  EXPECT_EQ(w.leave(2, wire::Leave::STOPPED, 4), Reason::kEndedStopped);
  EXPECT_EQ(w.journal.generations().at(2), GenerationState::kAbandoned);
  EXPECT_EQ(w.sent(3).back().goodbye().exit_code(), 75u);
}

TEST(Planned, AStopThatIsAskedForBeforeASwitchReachesWhoJoinsWithIt) {
  World w(small_options(2, 100));
  plan_a_join(w);
  w.happen(StopSignal{"SIGTERM"});
  EXPECT_TRUE(w.sent(3).empty());
  EXPECT_EQ(w.switched(1, 2, 5), Reason::kSwitched);
  ASSERT_FALSE(w.sent(3).empty());
  EXPECT_TRUE(w.sent(3).back().has_stop());
}

TEST(Planned, AMemberThatReconnectsHearsOfTheChangeAgain) {
  World w(small_options(2, 100));
  plan_a_join(w);
  w.happen(ConnectionClosed{2, "reset"});
  wire::Register m = World::registration(1);
  m.set_member(2);
  m.set_generation(1);
  w.join(12, m);
  EXPECT_EQ(last_planned(w, 12).generation(), 2u);
}

}  // namespace
}  // namespace lockstep::coordinator
