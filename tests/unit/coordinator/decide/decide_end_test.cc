// Checkpoints as the state sees them, and how long the end of a run may take.
#include "tests/unit/coordinator/decide/recovery.h"

namespace lockstep::coordinator {
namespace {

TEST(Decide, AFailedPeriodicCheckpointIsCountedAFailedLastOneEndsTheRun) {
  World w;
  w.train();
  EXPECT_EQ(w.checkpoint(1, 1, false, "disk full"), Reason::kCheckpointFailed);
  EXPECT_EQ(w.state.failed_checkpoints, 1u);
  EXPECT_EQ(w.checkpoint(1, 4, true, "disk full"), Reason::kEndedCheckpointFailed);
  EXPECT_EQ(w.ends[0].exit_code, 70);
}

TEST(Decide, OnlyOlderCheckpointsBeyondKeepAreDropped) {
  World w;
  w.train();
  w.report(1, 1, 0, 3);
  w.report(2, 1, 0, 3);
  w.checkpoint(1, 1);
  w.checkpoint(1, 2);
  EXPECT_EQ(w.sent(1).back().checkpoint_ack().drop_size(), 0);
  EXPECT_EQ(w.checkpoint(1, 3), Reason::kCheckpointAccepted);
  ASSERT_EQ(w.sent(1).back().checkpoint_ack().drop_size(), 1);
  EXPECT_EQ(w.sent(1).back().checkpoint_ack().drop(0), "step-0000000001-g1-m1");
  EXPECT_EQ(w.checkpoint(1, 3), Reason::kAlreadyCounted);
}

// Member 2 joined after step 4. The reports of the steps before are with member 1, which is left
// out.
TEST(Decide, ARunWhoseLastWorkersHaveLeftWaitsForTheReportsOfOneThatWasLeftOut) {
  const auto tell = [](World& w, ConnectionId c, uint64_t batch, Generation g, Step from, Step to) {
    wire::Envelope e = w.records(c, batch, from, to);
    e.set_generation(g);
    return w.say(c, e);
  };
  for (const bool dies : {false, true}) {
    World w(small_options(1, 8));
    w.hello(World::kAgent, {});
    w.train();
    EXPECT_EQ(w.scale(2), Reason::kCommandDone);
    w.join(2);
    w.switched(1, 2, 4);
    w.switched(2, 2, 4);
    EXPECT_EQ(w.drain(1), Reason::kDrainRequested);
    w.switched(2, 3, 6);
    tell(w, 2, 1, 2, 4, 6);
    tell(w, 2, 2, 3, 6, 8);
    EXPECT_EQ(w.checkpoint(2, 8, true), Reason::kCheckpointAccepted);
    EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 8), Reason::kLeft);
    EXPECT_TRUE(w.ends.empty());
    if (dies) {
      EXPECT_EQ(w.exit(World::kAgent, 1000, -1, 9), Reason::kEndedTerm);
    } else {
      EXPECT_EQ(tell(w, 1, 1, 1, 0, 4), Reason::kEndedFinished);
      ASSERT_EQ(w.ends.size(), 1u);
      EXPECT_EQ(w.ends[0].exit_code, 0);
    }
  }
}

TEST(Decide, ADroppedCheckpointThatIsReportedAgainIsDroppedAgainAndNeverCountsAgain) {
  World w;
  w.train();
  w.report(1, 1, 0, 3);
  w.report(2, 1, 0, 3);
  for (const Step step : {1u, 2u, 3u}) w.checkpoint(1, step);
  EXPECT_EQ(w.checkpoint(1, 1), Reason::kAlreadyCounted);
  const auto sent = w.sent(1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].checkpoint_ack().name(), "step-0000000001-g1-m1");
  ASSERT_EQ(sent[0].checkpoint_ack().drop_size(), 1);
  EXPECT_EQ(sent[0].checkpoint_ack().drop(0), "step-0000000001-g1-m1");
  EXPECT_EQ(w.journal.load()->checkpoints.at(0).state, CheckpointState::kDropped);
  EXPECT_EQ(w.state.checkpoints.size(), 2u);
}

TEST(Decide, AFailedCheckpointThatIsReportedAgainAfterAReconnectCountsOnce) {
  World w;
  w.train();
  w.checkpoint(1, 1, false, "disk full");
  w.checkpoint(1, 2, false, "disk full");
  EXPECT_EQ(w.state.failed_checkpoints, 2u);
  for (const Step step : {1u, 2u}) {
    EXPECT_EQ(w.checkpoint(1, step, false, "disk full"), Reason::kAlreadyCounted);
    EXPECT_EQ(w.sent(1).back().checkpoint_ack().drop_size(), 0);  // only that it stops
  }
  EXPECT_EQ(w.state.failed_checkpoints, 2u);
}

bool asks_for_manifest(const World& w) {
  return std::any_of(w.actions.begin(), w.actions.end(),
                     [](const Action& a) { return std::holds_alternative<ReadManifest>(a); });
}

TEST(Decide, ACheckpointCountsWhenTheCoordinatorHasReadItsManifest) {
  World w;
  w.train();
  w.sees_checkpoints = false;
  const std::string name = checkpoint_name({1, 1, 1});
  EXPECT_EQ(w.checkpoint(1, 1), Reason::kCheckpointWritten);
  EXPECT_TRUE(asks_for_manifest(w));
  EXPECT_EQ(w.happen(ManifestRead{name, "", "not there"}), Reason::kCheckpointWritten);
  EXPECT_EQ(w.happen(ManifestRead{name, "another", ""}), Reason::kCheckpointWritten);
  EXPECT_TRUE(w.state.checkpoints.empty());
  EXPECT_TRUE(w.journal.load()->checkpoints.empty());
  EXPECT_EQ(w.checkpoint(1, 1), Reason::kAlreadyCounted);  // over a new connection
  EXPECT_TRUE(w.sent(1).empty());                          // so its writer goes on waiting
  w.wait(1'000);
  EXPECT_TRUE(asks_for_manifest(w));
  EXPECT_EQ(w.happen(ManifestRead{name, "m", ""}), Reason::kCheckpointAccepted);
  EXPECT_EQ(w.sent(1).back().checkpoint_ack().name(), name);
  EXPECT_EQ(w.state.checkpoints.size(), 1u);
  EXPECT_EQ(w.happen(ManifestRead{name, "m", ""}), Reason::kIgnored);
}

// The reason of the answer that comes after 21 s.
Reason never_see(World& w, Step step, bool final) {
  w.sees_checkpoints = false;
  EXPECT_EQ(w.checkpoint(1, step, final), Reason::kCheckpointWritten);
  w.wait_alive(21'000);
  return w.happen(ManifestRead{checkpoint_name({step, 1, 1}), "", "not there"});
}

TEST(Decide, AWriterWithAnotherDirectoryShowsAtItsFirstCheckpoint) {
  Options options = small_options();
  options.run_dir = "/runs/first";
  World w(options);
  w.train();
  EXPECT_EQ(never_see(w, 1, false), Reason::kCheckpointFailed);
  EXPECT_EQ(w.state.failed_checkpoints, 1u);
  EXPECT_TRUE(w.state.checkpoints.empty());
  EXPECT_EQ(w.sent(1).back().checkpoint_ack().name(), checkpoint_name({1, 1, 1}));
  EXPECT_THAT(w.journal.events().back().text,
              testing::AllOf(testing::HasSubstr(checkpoint_name({1, 1, 1})),
                             testing::HasSubstr("node n"), testing::HasSubstr("/runs/first")));
}

TEST(Decide, ALastCheckpointThatTheCoordinatorDoesNotSeeIsNoEnd) {
  World w;
  w.train();
  EXPECT_EQ(never_see(w, 4, true), Reason::kEndedCheckpointFailed);
  EXPECT_EQ(w.ends.at(0).exit_code, 70);
}

// Both have trained to the end; the one that does not write has left.
void wait_for_the_writer(World& w) {
  w.train();
  w.report(1, 1, 0, 4);
  w.report(2, 1, 0, 4);
  EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 4), Reason::kLeft);
}

Reason wait_with_heartbeats(World& w, ConnectionId from, int64_t ms) {
  for (int64_t waited_ms = 0; waited_ms < ms; waited_ms += 1'000) {
    w.beat(from);
    const Reason reason = w.wait(1'000);
    if (reason != Reason::kNothingDue) return reason;
  }
  return Reason::kNothingDue;
}

TEST(Decide, TheWriterOfALargeLastCheckpointIsNotHurriedByThoseThatHaveLeft) {
  World w;
  wait_for_the_writer(w);
  EXPECT_EQ(wait_with_heartbeats(w, 1, 3 * w.options.end_timeout_ms), Reason::kNothingDue);
  w.checkpoint(1, 4, true);
  EXPECT_EQ(w.leave(1, wire::Leave::FINISHED, 4), Reason::kEndedFinished);
}

wire::Command stop_command() {
  wire::Command command;
  command.set_stop(true);
  return command;
}

TEST(Decide, ACommandStopsTheRunAndIsAnsweredFirst) {
  World w;
  w.train();
  EXPECT_EQ(w.command(stop_command()), Reason::kCommandDone);
  EXPECT_TRUE(w.sent(World::kCommand).back().command_answer().ok());
  EXPECT_TRUE(w.state.stop_ms);
  EXPECT_TRUE(w.sent(1).back().has_stop());
  EXPECT_EQ(w.command(stop_command()), Reason::kCommandDone) << "it stops already";
  EXPECT_TRUE(w.sent(World::kCommand).back().command_answer().ok());
  EXPECT_TRUE(w.sent(1).empty()) << "nobody is told twice";
}

TEST(Decide, ACommandBeforeTrainingEndsTheRun) {
  World w;
  w.join(1);
  EXPECT_EQ(w.command(stop_command()), Reason::kEndedStopped);
  EXPECT_TRUE(w.sent(World::kCommand).back().command_answer().ok());
  EXPECT_EQ(w.ends[0].exit_code, 75);
}

TEST(Decide, AWriterThatStaysAfterItsLastCheckpointEndsTheRunAndIsNamed) {
  World w;
  wait_for_the_writer(w);
  w.checkpoint(1, 4, true);
  EXPECT_EQ(wait_with_heartbeats(w, 1, w.options.end_timeout_ms), Reason::kNothingDue);
  ASSERT_EQ(wait_with_heartbeats(w, 1, 1'000), Reason::kEndedLeaveTimeout);
  EXPECT_NE(w.ends[0].message.find("rank 0"), std::string::npos) << w.ends[0].message;
  EXPECT_EQ(w.ends[0].message.find("rank 1"), std::string::npos) << w.ends[0].message;
}

TEST(Decide, AWorkerThatStaysAfterTheWriterHasLeftEndsTheRun) {
  World w;
  w.train();
  EXPECT_EQ(w.leave(1, wire::Leave::FINISHED, 4), Reason::kLeft);
  EXPECT_EQ(wait_with_heartbeats(w, 2, w.options.end_timeout_ms), Reason::kNothingDue);
  EXPECT_EQ(wait_with_heartbeats(w, 2, 1'000), Reason::kEndedLeaveTimeout);
}

TEST(Decide, WhenTheWriterOfTheLastCheckpointDiesTheOthersSeeItThrough) {
  World w;
  wait_for_the_writer(w);
  EXPECT_EQ(w.wait(w.options.lease_ms + 1'000), Reason::kRegrouped);
  EXPECT_EQ(w.sent(2).back().prepare().members_size(), 1);  // its leave is void
  EXPECT_EQ(w.promise_at(2, 4), Reason::kStarted);
  EXPECT_EQ(w.sent(2).back().start().writer(), 2u);
  EXPECT_EQ(w.started().resume().step(), 4u);
  EXPECT_EQ(w.checkpoint(2, 4, true), Reason::kCheckpointAccepted);
  EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 4), Reason::kEndedFinished);
}

// The other one has nothing to do in that phase, so it is past it before the file is there.
TEST(Decide, AWriterThatDiesBeforeTheLastCheckpointIsReplacedByOneWhoWritesIt) {
  World w;
  w.train();
  w.hello(World::kAgent, {1000, 1001});
  w.report(1, 1, 0, 4);
  wire::Envelope evaluated = w.records(2, 1, 0, 4);
  evaluated.mutable_step_records()->add_evals()->set_step(4);
  evaluated.mutable_step_records()->mutable_evals(0)->set_samples(10);
  EXPECT_EQ(w.say(2, evaluated), Reason::kRecordsAccepted);
  EXPECT_EQ(w.leave(2, wire::Leave::FINISHED, 4), Reason::kLeft);
  EXPECT_EQ(w.kill(1), Reason::kRegrouped);
  wire::Envelope e;
  wire::Promise* m = e.mutable_promise();
  m->set_generation(w.state.generation);
  m->set_has_state(true);
  m->mutable_applied()->set_step(4);
  m->mutable_applied()->set_phase(static_cast<uint32_t>(Phase::kEnd));
  m->set_lived(1);
  EXPECT_EQ(w.say(2, e), Reason::kStarted);
  EXPECT_EQ(w.started().resume().phase(), static_cast<uint32_t>(Phase::kCheckpoint));
  EXPECT_EQ(w.started().writer(), 2u);
}

TEST(Decide, AWorkerThatIsToLeaveBeforeTrainingBeginsIsSentAwayToBeReplaced) {
  World w;
  w.hello(World::kAgent, {1000, 1001});
  w.join(1);
  w.join(2);
  wire::Envelope e;
  e.mutable_drain()->set_reason("SIGTERM");
  EXPECT_EQ(w.say(1, e), Reason::kDrainRequested);
  w.kill(2, true);
  ASSERT_TRUE(w.sent(1).back().has_goodbye());
  EXPECT_EQ(w.sent(1).back().goodbye().exit_code(), 75u);
  EXPECT_TRUE(w.ends.empty());
}

// A worker that died there before it was replaced says nothing about the worker that is silent now.
TEST(Decide, ASilentWorkerBeforeTrainingBeginsIsWaitedForAlthoughAnotherDiedInItsPlace) {
  World w;
  w.hello(World::kAgent, {1000, 1001});
  w.join(1);
  w.kill(1, true);
  wire::Register m = World::registration(0);
  m.set_pid(2000);
  w.join(3, m);
  for (int i = 0; i < 40 && w.state.members.at(2).state != MemberState::kDead; ++i) w.wait(500);
  EXPECT_EQ(w.state.members.at(2).state, MemberState::kDead);
  EXPECT_TRUE(w.ends.empty());
}

// The run may have deleted what it needs to go back to such a checkpoint.
TEST(Decide, ACheckpointThatIsReportedAfterLaterOnesHaveTakenItsPlaceNeverCounts) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.kill(3);
  w.promise_at(1, 5);
  w.promise_at(2, 5);
  for (const ConnectionId c : {1u, 2u}) w.report(c, 2, 5, 12);
  EXPECT_EQ(w.checkpoint(1, 8), Reason::kCheckpointAccepted);
  EXPECT_EQ(w.checkpoint(1, 4, false, "", 1), Reason::kCheckpointAccepted);  // one of two
  EXPECT_EQ(w.checkpoint(1, 10), Reason::kCheckpointAccepted);
  EXPECT_EQ(w.checkpoint(1, 5, false, "", 1), Reason::kCheckpointLate);
  EXPECT_EQ(w.sent(1).back().checkpoint_ack().name(), "step-0000000005-g1-m1");
  EXPECT_EQ(w.state.checkpoints.size(), 2u);
  EXPECT_EQ(w.checkpoint(1, 12), Reason::kCheckpointAccepted);
  const auto dropped = w.sent(1).back().checkpoint_ack().drop();
  EXPECT_NE(std::find(dropped.begin(), dropped.end(), "step-0000000005-g1-m1"), dropped.end());
}

TEST(Decide, AOnlyWorkerThatDiesAfterTheLastCheckpointHasFinishedTheRun) {
  World w(small_options(1));
  w.train();
  wire::Envelope e = w.records(1, 1, 0, 4);
  wire::EvalReport& eval = *e.mutable_step_records()->add_evals();
  eval.set_step(4);
  eval.set_samples(10);
  EXPECT_EQ(w.say(1, e), Reason::kRecordsAccepted);
  w.checkpoint(1, 4, true);
  EXPECT_EQ(w.kill(1), Reason::kEndedFinished);
  EXPECT_EQ(w.ends[0].exit_code, 0);
}

}  // namespace
}  // namespace lockstep::coordinator
