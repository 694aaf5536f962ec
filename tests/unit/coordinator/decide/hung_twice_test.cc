// Workers that hang while no member is left to wait for them are replaced, and a second hang in a
// step ends the run. Where no agent starts a worker again, the run does not wait for one.
#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/decide/bad_samples.h"

namespace lockstep::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class HungTwice : public BadSamples {
 protected:
  using Slots = std::vector<SlotInHand>;

  explicit HungTwice(uint32_t workers = 1) {
    w = World(small_options(workers, 100));
    w.options.hang_ms = 10'000;
    w.train();
    agent();
  }
  void agent() {
    std::vector<uint32_t> living;
    for (uint32_t i = 0; i < w.options.workers; ++i) living.push_back(1000 + i);
    w.hello(World::kAgent, living);
  }
  // All stand in this step until something follows.
  Reason stand(Step step) {
    for (int i = 0; i < 200; ++i) {
      for (const auto& [connection, id] : std::map(w.state.by_connection)) {
        wire::Envelope e;
        e.mutable_heartbeat()->set_step(step);
        w.say(connection, e);
      }
      if (const Reason reason = w.wait(500); reason != Reason::kNothingDue) return reason;
    }
    return Reason::kNothingDue;
  }
  bool is_asked_for_its_stack(ConnectionId c) const {
    for (const wire::Envelope& e : w.sent(c))
      if (e.has_evict() && e.evict().save_stack()) return true;
    return false;
  }
  Reason goes(uint32_t pid, const Slots& in_hand, const std::string& words = "stands at a.py:3") {
    return w.exit(World::kAgent, pid, 70, 0, words, true, in_hand);
  }
  // A run of one hangs in `step`, and its process goes.
  Reason hang(Step step, const Slots& in_hand, const std::string& words = "stands at a.py:3") {
    EXPECT_EQ(stand(step), Reason::kAwaitsProof);
    EXPECT_TRUE(is_asked_for_its_stack(1));
    return goes(1000, in_hand, words);
  }
  void begin_again() {
    next_term();
    agent();
  }
};

TEST_F(HungTwice, ARunOfOneIsReplacedAtOnceAndEndsWithTheSamplesAndTheStacksOfBoth) {
  EXPECT_EQ(hang(33, {{33, 2}}, "stands at a.py:3"), Reason::kEndedTerm);
  begin_again();
  EXPECT_EQ(hang(33, {{33, 2}}, "stands at b.py:4"), Reason::kEndedPoison);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 65);
  EXPECT_THAT(w.ends[0].message,
              AllOf(Names("step 34", "slot 2", "epoch 2"), Says("hung"), Not(HasSubstr("killed"))));
  EXPECT_THAT(w.ends[0].message, AllOf(HasSubstr("a.py:3"), HasSubstr("b.py:4")));
}

TEST_F(HungTwice, TheirSamplesMayBeLeftOut) {
  policy("skip");
  EXPECT_EQ(hang(33, {{33, 2}}), Reason::kEndedTerm);
  begin_again();
  EXPECT_EQ(hang(33, {{33, 2}}), Reason::kEndedTerm);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].step, 33u);
  EXPECT_EQ(kept()[0].slots, (SlotRun{2, 3}));
}

TEST_F(HungTwice, WithNothingOrOtherSamplesInHandTheStepIsNamed) {
  policy("skip");  // of which slot would it be?
  EXPECT_EQ(hang(33, {}), Reason::kEndedTerm);
  begin_again();
  EXPECT_EQ(hang(33, {{33, 1}}), Reason::kEndedPoison);
  EXPECT_EQ(w.ends[0].exit_code, 70);
  EXPECT_THAT(w.ends[0].message, AllOf(Names("step 34", "slot 1"), HasSubstr("a.py:3")));
}

TEST_F(HungTwice, AHangAndADeathAtTheSameSlotAreTwo) {
  EXPECT_EQ(hang(33, {{33, 1}}), Reason::kEndedTerm);
  begin_again();
  EXPECT_EQ(w.exit(World::kAgent, 1000, -1, 9, "", true, {{33, 1}}), Reason::kEndedPoison);
  EXPECT_THAT(w.ends[0].message, AllOf(Says("hung while"), Says("it killed")));
}

TEST_F(HungTwice, HangsInDifferentStepsEndNothing) {
  EXPECT_EQ(hang(33, {{33, 1}}), Reason::kEndedTerm);
  begin_again();
  EXPECT_EQ(hang(34, {{34, 1}}), Reason::kEndedTerm);
  begin_again();
  EXPECT_TRUE(w.ends.empty());
}

class AllHang : public HungTwice {
 protected:
  AllHang() : HungTwice(2) {}
  void promise_where_they_are() {
    for (ConnectionId c : {1, 2}) w.promise_at(c, 0, 1);
  }
};

TEST_F(AllHang, TheyAreAskedOnceAndThenReplacedAndOneHangOfTwoIsOneIncident) {
  EXPECT_EQ(stand(33), Reason::kRegrouped);
  EXPECT_FALSE(is_asked_for_its_stack(1));
  promise_where_they_are();
  EXPECT_EQ(stand(33), Reason::kAwaitsProof);
  EXPECT_TRUE(is_asked_for_its_stack(1) && is_asked_for_its_stack(2));
  goes(1000, {{33, 0}});
  EXPECT_EQ(w.state.run, RunState::kTermEnded);
  begin(BeginMode::kNextTerm);
  // Its exit is told to the next term, which has no member for it.
  w.hello(World::kAgent, {1001});
  w.exit(World::kAgent, 1001, 70, 0, "stands at b.py:4", true, {{33, 2}});
  EXPECT_TRUE(w.ends.empty());
  w.train();
  agent();
  // In the same step no worker is asked again.
  EXPECT_EQ(stand(33), Reason::kAwaitsProof);
  EXPECT_EQ(goes(1001, {{33, 2}}), Reason::kEndedPoison);
  EXPECT_EQ(w.ends[0].exit_code, 65);
  EXPECT_THAT(w.ends[0].message, AllOf(Names("step 34", "slot 2"), HasSubstr("b.py:4")));
}

TEST_F(AllHang, WhoDoesNotEvenAnswerHangsInItsApplyAndIsReplacedWithoutBeingAskedAgain) {
  EXPECT_EQ(stand(33), Reason::kRegrouped);
  EXPECT_EQ(stand(33), Reason::kAwaitsProof);  // both live, and answer no prepare
  EXPECT_TRUE(is_asked_for_its_stack(1) && is_asked_for_its_stack(2));
  goes(1000, {});
  EXPECT_EQ(w.state.run, RunState::kTermEnded);
  begin(BeginMode::kNextTerm);
  w.hello(World::kAgent, {1001});
  w.exit(World::kAgent, 1001, 70, 0, "stands at b.py:4", true, {});
  w.train();
  agent();
  EXPECT_EQ(stand(33), Reason::kAwaitsProof);
  ASSERT_EQ(goes(1001, {}, "stands at c.py:5"), Reason::kEndedPoison);
  EXPECT_EQ(w.ends[0].exit_code, 70);
  EXPECT_THAT(w.ends[0].message, AllOf(Names("step 34"), Says("hung"), HasSubstr("c.py:5")));
}

TEST_F(AllHang, WhoWasAskedForAnotherReasonAndDoesNotAnswerDoesNotHang) {
  w.happen(ConnectionClosed{2, "reset"});
  w.exit(World::kAgent, 1001, -1, 9, "", true, {});
  ASSERT_EQ(w.state.run, RunState::kPrepared);
  stand(33);
  EXPECT_FALSE(is_asked_for_its_stack(1));
}

class GivenUp : public HungTwice {
 protected:
  // The only worker dies after a checkpoint, and its exit is told in the next term.
  void die(bool will_restart) {
    w.report(1, 1, 0, 3);
    write_checkpoint(3);
    w.happen(ConnectionClosed{1, "reset"});
    w.fail(1, {});
    begin(BeginMode::kNextTerm);
    w.hello(World::kAgent, {1000});
    w.exit(World::kAgent, 1000, 70, 0, "ArithmeticError", will_restart);
  }
};

TEST_F(GivenUp, WhereNoAgentStartsAWorkerAgainTheRunEndsAtOnce) {
  die(/*will_restart=*/false);
  EXPECT_EQ(w.wait(500), Reason::kEndedDeath);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 70);
  EXPECT_THAT(w.ends[0].message,
              AllOf(HasSubstr("max_crashes"), HasSubstr("ArithmeticError"), HasSubstr("--resume")));
}

// A worker tells its failure itself before its agent, which has to connect again, tells the exit of
// the one before.
TEST_F(GivenUp, AnEarlierExitThatIsToldLateAnnouncesNobody) {
  w.report(1, 1, 0, 3);
  write_checkpoint(3);
  w.happen(ConnectionClosed{1, "reset"});
  w.fail(1, {});
  begin(BeginMode::kNextTerm);
  wire::Register m = World::registration(0);
  m.set_pid(2000);
  w.join(1, m);
  w.leave(1, wire::Leave::FAILED, 3, Code::kInternal, "cannot start a thread");
  w.hello(World::kAgent, {2000});
  w.exit(World::kAgent, 1000, 70, 0, "cannot start a thread", /*will_restart=*/true);
  w.exit(World::kAgent, 2000, 70, 0, "cannot start a thread", /*will_restart=*/false);
  EXPECT_EQ(w.wait(500), Reason::kEndedDeath);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_THAT(w.ends[0].message, HasSubstr("max_crashes"));
}

TEST_F(GivenUp, WhereOneComesItIsAwaited) {
  die(/*will_restart=*/true);
  EXPECT_EQ(w.wait(5'000), Reason::kNothingDue);
}

TEST_F(GivenUp, AnAgentThatIsNotHereMayComeWithItsOwn) {
  w.options.workers = 2;
  die(/*will_restart=*/false);
  EXPECT_EQ(w.wait(5'000), Reason::kNothingDue);
}

TEST_F(GivenUp, AfterANewOrderAllAgentsCountAgain) {
  die(/*will_restart=*/false);
  w.scale(1);
  EXPECT_EQ(w.wait(5'000), Reason::kNothingDue);
}

}  // namespace
}  // namespace lockstep::coordinator
