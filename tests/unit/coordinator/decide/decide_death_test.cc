// Tests what decide() takes for a death, and what follows before any member trains.
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

TEST(Decide, WhenAllAreKilledAndNobodyComesTheRunEndsWithAFullReport) {
  World w;
  w.train();
  w.hello(50);
  w.report(1, 1, 0, 3);
  w.report(2, 1, 0, 3);
  w.checkpoint(1, 3);
  EXPECT_EQ(w.exit(50, 1000, -1, 9), Reason::kRegrouped);
  EXPECT_EQ(w.exit(50, 1001, -1, 9, "killed by a test"), Reason::kEndedDeath);
  const std::string& m = w.ends[0].message;
  EXPECT_EQ(w.ends[0].exit_code, 70);
  for (const char* part : {"rank 1", "node n", "pid 1001", "signal 9", "step 3", "killed by a test",
                           "step-0000000003-g1-m1", "--run-dir /run --resume"}) {
    EXPECT_NE(m.find(part), std::string::npos) << part << " in: " << m;
  }
  EXPECT_EQ(w.sent(50).back().goodbye().exit_code(), 70u);
  EXPECT_EQ(w.exit(50, 1000, 0, 0), Reason::kRefusedEnded);
}

TEST(Decide, AWorkerThatDiesBeforeItRegistersEndsTheRunWithItsCode) {
  for (const auto& [code, expected] : {std::pair{65, 65}, {78, 78}, {1, 70}, {0, 70}}) {
    World w;
    w.hello(50);
    w.join(1);
    EXPECT_EQ(w.exit(50, 4242, code, 0, "why"), Reason::kEndedDeath);
    EXPECT_EQ(w.ends[0].exit_code, expected);
  }
}

TEST(Decide, AReplacementThatCannotBeStartedIsToldToWhomItWasAnnounced) {
  World w;
  w.hello(50, {1000, 1001});
  w.train();
  w.exit(50, 1001, -1, 9, "", /*will_restart=*/true);
  wire::Envelope e;
  wire::WorkerExit& exit = *e.mutable_worker_exit();
  exit.set_local_rank(1);
  exit.set_exit_code(78);
  exit.set_last_words("cannot start /opt/lockstep-worker: No such file or directory");
  w.say(50, e);
  ASSERT_TRUE(w.is_durable("worker_not_started"));
  const std::string text = w.journal.events().back().text;
  for (const char* part : {"worker 1", "node n", "/opt/lockstep-worker", "the run goes on"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  EXPECT_TRUE(w.state.replacements.empty());
}

TEST(Decide, AWorkerThatHasLeftMayDieWithoutHarm) {
  World w;
  w.train();
  w.hello(50);
  w.report(1, 1, 0, 4);
  w.report(2, 1, 0, 4);
  w.leave(2, wire::Leave::FINISHED, 4);
  EXPECT_EQ(w.exit(50, 1001, 0, 0), Reason::kIgnored);
  EXPECT_EQ(w.happen(ConnectionClosed{2, "closed"}), Reason::kDisconnected);
  w.checkpoint(1, 4, true);
  EXPECT_EQ(w.leave(1, wire::Leave::FINISHED, 4), Reason::kEndedFinished);
}

// Member 1 goes on speaking, member 2 says nothing any more.
void expect_death_of_a_silent_one(World& w) {
  for (int i = 0; i < 49; ++i) {
    w.beat(1);
    ASSERT_EQ(w.wait(100), Reason::kNothingDue);
  }
  w.beat(1);
  EXPECT_EQ(w.wait(400), Reason::kRegrouped);
  EXPECT_EQ(w.state.members.at(2).state, MemberState::kDead);
}

TEST(Decide, ASilentMemberIsDeadAfterItsLease) {
  World w;
  w.train();
  expect_death_of_a_silent_one(w);
  EXPECT_NE(w.journal.events().back().text.find("rank 1"), std::string::npos);
}

TEST(Decide, ACoordinatorThatSleptJudgesNobody) {
  World w;
  w.train();
  w.now_ms += 60'000;
  EXPECT_EQ(w.happen(Tick{}), Reason::kClockJumped);
  EXPECT_EQ(w.wait(1'000), Reason::kNothingDue);
}

TEST(Decide, WhatACoordinatorHeardAfterItsSleepCountsFromThen) {
  World w;
  w.train();
  w.now_ms += 60'000;
  w.beat(2);  // before the tick that notices; afterwards member 2 is silent
  EXPECT_EQ(w.happen(Tick{}), Reason::kClockJumped);
  expect_death_of_a_silent_one(w);
}

TEST(Decide, AClosedConnectionIsADeathAfterTheReconnectWindow) {
  World w;
  w.train();
  w.happen(ConnectionClosed{1, "reset by peer"});
  EXPECT_EQ(w.wait(200), Reason::kNothingDue);
  EXPECT_EQ(w.wait(200), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, std::vector<MemberId>{2});
}

TEST(Decide, AVerdictBeforeTrainingEndsTheRunAnAccidentAwaitsAnotherWorker) {
  for (const auto& [code, expected] : {std::pair{Code::kBadData, 65}, {Code::kConfig, 78}}) {
    World w;
    w.join(1);
    EXPECT_EQ(w.leave(1, wire::Leave::FAILED, 0, code, "because"), Reason::kEndedWorkerFailed);
    EXPECT_EQ(w.ends[0].exit_code, expected);
  }
  World w;
  w.hello(50);
  w.join(1);
  EXPECT_EQ(w.leave(1, wire::Leave::FAILED, 0, Code::kInternal, "because"),
            Reason::kAwaitsReplacement);
  EXPECT_EQ(w.exit(50, 1000, 70, 0, "", false), Reason::kEndedDeath);
  EXPECT_EQ(w.ends[0].exit_code, 70);
}

TEST(Decide, AVerdictBeforeTheFirstStepEndsTheRunAndLaterTheOthersGoOn) {
  World w;
  w.train();
  EXPECT_EQ(w.leave(1, wire::Leave::FAILED, 1, Code::kConfig, "no descriptors"),
            Reason::kEndedWorkerFailed);
  EXPECT_EQ(w.ends[0].exit_code, 78);
  World later;
  later.train();
  for (ConnectionId c = 1; c <= 2; ++c) later.report(c, 1, 0, 1);
  EXPECT_EQ(later.leave(1, wire::Leave::FAILED, 1, Code::kConfig, "no descriptors"),
            Reason::kRegrouped);
}

TEST(Decide, WorkersThatNeverComeEndTheRunAndAreCounted) {
  World w;
  w.options.lease_ms = 1'000'000;
  w.join(1);
  EXPECT_EQ(w.wait(61'000), Reason::kEndedMissingWorkers);
  EXPECT_NE(w.ends[0].message.find("1 of 2"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::coordinator
