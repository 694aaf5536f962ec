// Samples that kill their readers, and what becomes of them by policy.
#include <csignal>

#include "tests/unit/coordinator/bad_samples.h"

namespace lockstep::coordinator {
namespace {

using ::testing::HasSubstr;

class PoisonSkip : public BadSamples {
 protected:
  // Slot i belongs to rank i; steps 0 to 8 are done; the owners of slot 3 die in step 9.
  Reason kill_two_owners() {
    w.train();
    for (ConnectionId c = 1; c <= 4; ++c) w.report(c, 1, 0, 9);
    w.kill(4);
    for (ConnectionId c = 1; c < 3; ++c) w.promise_at(c, 9);
    EXPECT_EQ(w.promise_at(3, 9), Reason::kStarted);
    w.kill(3);
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
  EXPECT_THAT(kept()[0].reason, HasSubstr("it killed worker"));
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
  w.kill(2);
  EXPECT_EQ(w.promise_at(1, 9), Reason::kStarted);  // one death more is no second owner
  EXPECT_EQ(kept().size(), 1u);
}

// Slot 3's owner dies of reading ahead while step 9 is in flight, the next one in the sample's
// step, the twelfth.
class ReadAhead : public PoisonSkip {
 protected:
  Reason crash(ConnectionId c, int signal) {
    if (w.state.agents.empty()) w.hello(World::kAgent, {1000, 1001, 1002, 1003});
    return w.exit(World::kAgent, 999 + static_cast<uint32_t>(c), -1, signal);
  }
  Reason kill_early_and_late(int first_signal, int second_signal, Step late = 12) {
    policy("skip");
    w.options.job.mutable_data()->set_prefetch_batches(4);
    w.train();
    for (ConnectionId c = 1; c <= 4; ++c) w.report(c, 1, 0, 9);
    crash(4, first_signal);
    for (ConnectionId c = 1; c <= 3; ++c) w.promise_at(c, 9);
    for (ConnectionId c = 1; c <= 3; ++c) w.report(c, 2, 9, late);
    crash(3, second_signal);
    w.promise_at(1, late);
    return w.promise_at(2, late);
  }
};

TEST_F(ReadAhead, ADeathSomeStepsEarlyAndOneInTheStepAreOfOneCause) {
  EXPECT_EQ(kill_early_and_late(SIGBUS, SIGSEGV), Reason::kStarted);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].step, 12u);
  EXPECT_EQ(kept()[0].slots, (SlotRun{3, 4}));
}

TEST_F(ReadAhead, KillsFromOutsideAreNot) {
  EXPECT_EQ(kill_early_and_late(SIGKILL, SIGBUS), Reason::kStarted);
  EXPECT_TRUE(kept().empty());
}

TEST_F(ReadAhead, NorIsADeathFurtherBackThanAnyoneReadsAhead) {
  EXPECT_EQ(kill_early_and_late(SIGBUS, SIGBUS, 14), Reason::kStarted);
  EXPECT_TRUE(kept().empty());
}

TEST_F(PoisonSkip, StopNamesTheSamplesAndHowToLeaveThemOut) {
  EXPECT_EQ(kill_two_owners(), Reason::kEndedPoison);
  EXPECT_EQ(w.ends[0].exit_code, 65);
  EXPECT_THAT(w.ends[0].message, HasSubstr("step 10: it killed worker"));
  EXPECT_THAT(w.ends[0].message, HasSubstr("positions [39, 40) of epoch 1"));
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
