// Samples that kill their readers, and what becomes of them by policy.
#include <csignal>

#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/decide/bad_samples.h"

namespace lockstep::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PoisonSkip : public BadSamples {
 protected:
  using Slots = std::vector<SlotInHand>;

  // Slot i belongs to rank i; steps 0 to 8 are done.
  void train_nine_steps() {
    w.train();
    for (ConnectionId c = 1; c <= 4; ++c) w.report(c, 1, 0, 9);
  }
  // The owners of slot 3 die in step 9, or while they read ahead of it.
  Reason kill_two_owners(const Slots& first = {{9, 3}}, const Slots& second = {{9, 3}}) {
    train_nine_steps();
    w.kill(4, false, first);
    for (ConnectionId c = 1; c < 3; ++c) w.promise_at(c, 9);
    EXPECT_EQ(w.promise_at(3, 9), Reason::kStarted);
    w.kill(3, false, second);
    w.promise_at(1, 9);
    return w.promise_at(2, 9);
  }
  PoisonSkip() { w = World(small_options(4, 100)); }
};

TEST_F(PoisonSkip, ASlotThatKilledTwoOwnersIsLeftOutAndNothingIsUndone) {
  policy("skip");
  EXPECT_EQ(kill_two_owners(), Reason::kStarted);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].step, 9u);
  EXPECT_EQ(kept()[0].slots, (SlotRun{3, 4}));
  EXPECT_THAT(kept()[0].reason, Says("killed worker"));
  EXPECT_EQ(w.state.resume.step, 9u);
  ASSERT_EQ(w.started().skipped_size(), 1);
  EXPECT_EQ(w.started().skipped(0).step(), 9u);
  EXPECT_FALSE(newest_sound(*w.journal.load()).has_value());  // nothing to cut
  for (ConnectionId c = 1; c <= 2; ++c) {
    wire::Envelope e = w.records(c, 2, 9, 11);
    e.mutable_step_records()->mutable_records(0)->set_samples(3);
    EXPECT_EQ(w.say(c, e), Reason::kRecordsAccepted);
  }
  EXPECT_EQ(w.state.completed, 11u);
  EXPECT_EQ(w.history[9].samples, 3u);
  EXPECT_EQ(w.history[10].samples, 4u);
}

TEST_F(PoisonSkip, OtherSlotsOfTheStepMayBeLeftOutAfterItToo) {
  policy("skip");
  kill_two_owners();  // ranks 0 and 1 have two slots each
  w.kill(2, false, {{9, 2}});
  EXPECT_EQ(w.promise_at(1, 9), Reason::kStarted);  // one death more is no second owner
  EXPECT_EQ(kept().size(), 1u);
}

TEST_F(PoisonSkip, WhatBothWereReadingAheadIsNamedExactly) {
  policy("skip");
  EXPECT_EQ(kill_two_owners({{12, 3, true}}, {{12, 3, true}}), Reason::kStarted);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].step, 12u);
  EXPECT_EQ(kept()[0].slots, (SlotRun{3, 4}));
  EXPECT_THAT(kept()[0].reason, Names("slot 3"));
  ASSERT_EQ(w.started().skipped_size(), 1);
  EXPECT_EQ(w.started().skipped(0).step(), 12u);
  EXPECT_FALSE(newest_sound(*w.journal.load()).has_value());  // nothing to cut
}

TEST_F(PoisonSkip, WhatOneReadAheadAndTheOtherComputedIsTheSame) {
  policy("skip");
  EXPECT_EQ(kill_two_owners({{9, 3, true}}, {{9, 3, false}}), Reason::kStarted);
  EXPECT_EQ(kept().size(), 1u);
}

TEST_F(PoisonSkip, OfTwoDeathsAtTheSameTwoSlotsTheOneThatWasReadIsBlamedAlone) {
  policy("skip");
  const Slots both = {{12, 3, true}, {9, 3}};
  EXPECT_EQ(kill_two_owners(both, both), Reason::kStarted);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].step, 12u);
}

TEST_F(PoisonSkip, DeathsAtOtherSamplesAreNotTheirFault) {
  policy("skip");
  EXPECT_EQ(kill_two_owners({{9, 3}}, {{9, 2}}), Reason::kStarted);
  EXPECT_TRUE(kept().empty());
}

TEST_F(PoisonSkip, WhatASurvivorHasAppliedIsNotAtFault) {
  policy("skip");
  EXPECT_EQ(kill_two_owners({{8, 3}}, {{8, 3}}), Reason::kStarted);
  EXPECT_TRUE(kept().empty());
}

TEST_F(PoisonSkip, StepsAndSlotsThatTheRunDoesNotHaveAreIgnored) {
  policy("skip");
  EXPECT_EQ(kill_two_owners({{9, 77}}, {{9, 77}}), Reason::kStarted);
  EXPECT_TRUE(kept().empty());
}

// A member that a peer names and that has closed its connection counts as dead before its agent
// says so.
class PoisonSuspected : public PoisonSkip {
 protected:
  static constexpr int64_t kSoon = 500;   // ms: less than an agent is waited for
  static constexpr int64_t kLate = 2500;  // more

  PoisonSuspected() {
    policy("skip");
    train_nine_steps();
    w.hello(World::kAgent, {1000, 1001, 1002, 1003});
  }
  void lose(ConnectionId c) {
    w.suspect(1, c);
    w.happen(ConnectionClosed{c, "reset"});
  }
  Reason told(uint32_t pid, const Slots& in_hand) {
    return w.exit(World::kAgent, pid, -1, SIGBUS, "", false, in_hand);
  }
  void all_promise(ConnectionId last) {
    for (ConnectionId c = 1; c <= last; ++c) w.promise_at(c, 9);
  }
};

TEST_F(PoisonSuspected, WithNobodyElseUnderSuspicionItIsDeadAtOnce) {
  lose(4);
  EXPECT_EQ(w.wait_alive(kSoon), Reason::kRegrouped);
}

TEST_F(PoisonSuspected, ASecondOneIsAwaitedUntilItsAgentSaysWhatItHadInHand) {
  told(1003, {{9, 3}});
  all_promise(3);
  lose(3);
  EXPECT_EQ(w.wait_alive(kSoon), Reason::kNothingDue);
  EXPECT_EQ(told(1002, {{9, 3}}), Reason::kRegrouped);
  all_promise(2);
  EXPECT_EQ(kept().size(), 1u);  // and the third was never given them
  EXPECT_EQ(w.state.run, RunState::kStarted);
}

TEST_F(PoisonSuspected, ASecondOneIsAwaitedWhileTheFirstOnesExitIsUntold) {
  lose(4);
  ASSERT_EQ(w.wait_alive(kSoon), Reason::kRegrouped);
  all_promise(3);
  lose(3);
  EXPECT_EQ(w.wait_alive(kSoon), Reason::kNothingDue);
  told(1003, {{9, 3}});
  told(1002, {{9, 3}});
  all_promise(2);
  EXPECT_EQ(kept().size(), 1u);
}

TEST_F(PoisonSuspected, AThirdOneGetsTheSamplesOnlyAfterTheWordOnTheFirst) {
  for (const bool is_told : {true, false}) {
    SCOPED_TRACE(is_told);
    const World before = w;
    lose(4);
    ASSERT_EQ(w.wait_alive(kSoon), Reason::kRegrouped);
    all_promise(3);
    ASSERT_EQ(told(1002, {{9, 3}}), Reason::kRegrouped);
    all_promise(2);
    EXPECT_EQ(w.state.run, RunState::kPrepared);
    EXPECT_EQ(w.wait_alive(kSoon), Reason::kNothingDue);
    EXPECT_EQ(is_told ? told(1003, {{9, 3}}) : w.wait_alive(kLate), Reason::kStarted);
    EXPECT_EQ(kept().size(), is_told ? 1u : 0u);
    w = before;
  }
}

// Two are lost, one after the other, before the agent has found a term that has just begun.
TEST_F(PoisonSuspected, AnAgentThatIsStillOnItsWayIsAwaitedToo) {
  w.happen(ConnectionClosed{World::kAgent, "reset"});
  for (const ConnectionId c : {4, 3}) {
    lose(c);
    ASSERT_EQ(w.wait_alive(kSoon), Reason::kRegrouped);
    all_promise(c - 1);
  }
  EXPECT_EQ(w.state.run, RunState::kPrepared);
  w.hello(World::kAgent, {1000, 1001});
  told(1003, {{9, 3}});
  EXPECT_EQ(told(1002, {{9, 3}}), Reason::kStarted);
  EXPECT_EQ(kept().size(), 1u);
}

TEST_F(PoisonSuspected, AnExitThatIsToldWhenTheNextGenerationTrainsStillCounts) {
  told(1003, {{9, 3}});
  all_promise(3);
  lose(3);
  ASSERT_EQ(w.wait_alive(kLate), Reason::kRegrouped);
  all_promise(2);
  EXPECT_EQ(told(1002, {{9, 3}}), Reason::kRegrouped);
  all_promise(2);
  EXPECT_EQ(kept().size(), 1u);
}

TEST_F(PoisonSkip, WhoSaysItselfThatItFailedIsACasualtyAtOnceAndOnlyOnce) {
  policy("skip");
  train_nine_steps();
  w.fail(4, {{9, 3}});
  w.exit(World::kAgent, 1003, 70, 0, "", false, {{9, 3}});
  for (ConnectionId c = 1; c <= 3; ++c) w.promise_at(c, 9);
  EXPECT_EQ(w.state.experience.casualties.size(), 1u);
  EXPECT_TRUE(kept().empty());
  w.fail(3, {{9, 3}});
  w.promise_at(1, 9);
  EXPECT_EQ(w.promise_at(2, 9), Reason::kStarted);
  EXPECT_EQ(kept().size(), 1u);
}

TEST_F(PoisonSkip, WhoWasToldToGoHadNothingInHandThatMatters) {
  policy("skip");
  w.train();
  w.hello(World::kAgent, {1000, 1001, 1002, 1003});
  for (const int code : {0, 75, 65}) {
    w.exit(World::kAgent, 1003, code, 0, "", true, {{9, 3, true}});
    EXPECT_TRUE(w.state.experience.casualties.empty()) << code;
  }
}

// The last one that holds the state dies of the same samples in two terms.
TEST_F(PoisonSkip, ARunOfOneWorkerRemembersOverItsTermsOfWhatItDied) {
  w = World(small_options(1, 100));
  policy("skip");
  w.train();
  w.report(1, 1, 0, 3);
  w.hello(World::kAgent, {1000});
  EXPECT_EQ(w.kill(1, true, {{5, 2, true}, {3, 0}}), Reason::kEndedTerm);
  EXPECT_TRUE(kept().empty());
  next_term();
  EXPECT_EQ(w.state.experience.casualties.size(), 1u);
  w.hello(World::kAgent, {1000});
  EXPECT_EQ(w.kill(1, true, {{5, 2, true}, {2, 3}}), Reason::kEndedTerm);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].step, 5u);
  EXPECT_EQ(kept()[0].slots, (SlotRun{2, 3}));
  next_term();
  ASSERT_EQ(w.started().skipped_size(), 1);
}

TEST_F(PoisonSkip, StopNamesTheSamplesAndHowToLeaveThemOut) {
  EXPECT_EQ(kill_two_owners(), Reason::kEndedPoison);
  EXPECT_EQ(w.ends[0].exit_code, 65);
  EXPECT_THAT(w.ends[0].message, AllOf(Names("step 10"), Says("killed worker")));
  EXPECT_THAT(w.ends[0].message, Names("[39, 40)", "epoch 1"));
  EXPECT_THAT(w.ends[0].message, HasSubstr("train.on_bad_samples=skip"));
}

TEST_F(PoisonSkip, APlannedChangeCarriesWhatIsLeftOut) {
  policy("skip");
  kill_two_owners();
  w.join(5, World::registration(4));
  w.wait_alive(500);
  ASSERT_TRUE(w.state.planned.has_value());
  ASSERT_EQ(w.state.planned->start.skipped_size(), 1);
  EXPECT_EQ(w.state.planned->start.skipped(0).step(), 9u);
}

}  // namespace
}  // namespace lockstep::coordinator
