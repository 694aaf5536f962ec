// The same error of a script at several slots of a step: the script is at fault, and no sample.
#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/decide/bad_samples.h"

namespace lockstep::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kError[] = "the script failed: KeyError: 'conf'";
constexpr char kTrace[] = "Traceback (most recent call last):\n  line 9\nKeyError: 'conf'";

class Raised : public BadSamples {
 protected:
  Raised() {
    w = World(small_options(4, 100));
    policy("skip");
  }

  // Slot i belongs to rank i; steps 0 to 8 are done.
  void train_nine_steps() {
    w.train();
    for (ConnectionId c = 1; c <= w.options.workers; ++c) w.report(c, 1, 0, 9);
  }
  Reason raises(ConnectionId c, const std::vector<SlotInHand>& in_hand,
                const std::string& error = kError) {
    return w.fail(c, in_hand, error + "\n" + kTrace, Code::kRaised);
  }
  void all_promise(ConnectionId last) {
    for (ConnectionId c = 1; c <= last; ++c) w.promise_at(c, 9);
  }
  // It dies twice at the first slot of step 9, which is left out.
  void train_alone_past_two_deaths() {
    w = World(small_options(1, 100));
    policy("skip");
    train_nine_steps();
    w.hello(World::kAgent, {1000});
    for (const uint32_t slot : {0, 0}) {
      raises(1, {{9, slot}});
      EXPECT_EQ(w.exit(World::kAgent, 1000, 70, 0, "", true, {{9, slot}}), Reason::kEndedTerm);
      next_term();
      w.hello(World::kAgent, {1000});
    }
  }
  void expect_script_at_fault() {
    ASSERT_EQ(w.ends.size(), 1u);
    EXPECT_EQ(w.ends[0].exit_code, 64);
    EXPECT_THAT(w.ends[0].message, AllOf(HasSubstr("step 10: " + std::string(kError) + "; "),
                                         HasSubstr("the script is at fault"), EndsWith(kTrace)));
    EXPECT_THAT(w.ends[0].message, Not(HasSubstr("killed")));
    EXPECT_TRUE(kept().empty()) << "samples are left out";
  }
};

TEST_F(Raised, TheSameAtTwoSlotsOfAStepEndsTheRunAtOnceWhateverThePolicy) {
  const World fresh = w;
  for (const char* on_bad_samples : {"skip", "stop"}) {
    SCOPED_TRACE(on_bad_samples);
    w = fresh;
    policy(on_bad_samples);
    train_nine_steps();
    EXPECT_EQ(raises(4, {{9, 3}}), Reason::kRegrouped);
    EXPECT_EQ(raises(3, {{9, 2}}), Reason::kEndedWorkerFailed);  // in the generation before
    expect_script_at_fault();
    ASSERT_EQ(w.ends.size(), 1u);
    EXPECT_THAT(w.ends[0].message, AllOf(HasSubstr("at slot 2"), HasSubstr("at slot 3 before")));
  }
}

TEST_F(Raised, WhatALoaderReadsAheadIsNotWhereItIsRaised) {
  train_nine_steps();
  raises(4, {{10, 3, true}, {9, 3}});
  EXPECT_EQ(raises(3, {{10, 3, true}, {9, 2}}), Reason::kEndedWorkerFailed);
  expect_script_at_fault();
}

TEST_F(Raised, OtherErrorsAtOtherSlotsOrStepsSayNothing) {
  train_nine_steps();
  raises(4, {{9, 3}});
  raises(3, {{9, 2}}, "the script failed: KeyError: 'other'");
  w.fail(2, {{9, 1}}, kError);  // not the script's own code
  EXPECT_EQ(raises(1, {{10, 0}}), Reason::kEndedTerm);
  EXPECT_TRUE(w.ends.empty());
}

TEST_F(Raised, AtOneSlotTwiceItIsTheSamplesAndTheErrorIsKept) {
  train_nine_steps();
  raises(4, {{9, 3}});
  all_promise(3);
  raises(3, {{9, 3}});
  all_promise(2);
  EXPECT_EQ(w.state.run, RunState::kStarted);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_THAT(kept()[0].reason, EndsWith("; both said: " + std::string(kError)));
}

TEST_F(Raised, OtherErrorsAtOneSlotAreItsSamplesAndNoErrorIsKept) {
  train_nine_steps();
  raises(4, {{9, 3}});
  all_promise(3);
  raises(3, {{9, 3}}, "another");
  all_promise(2);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_THAT(kept()[0].reason, Not(HasSubstr("both said")));
}

TEST_F(Raised, ByPolicyStopBothAreNamedTheSamplesAndTheError) {
  policy("stop");
  train_nine_steps();
  raises(4, {{9, 3}});
  all_promise(3);
  raises(3, {{9, 3}});
  w.promise_at(1, 9);
  EXPECT_EQ(w.promise_at(2, 9), Reason::kEndedPoison);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 65);
  EXPECT_THAT(w.ends[0].message, AllOf(HasSubstr("positions [39, 40)"), HasSubstr(kError),
                                       HasSubstr("mend the script"), EndsWith(kTrace)));
}

TEST_F(Raised, WhatWasLeftOutComesBackWhenAnotherSlotRaisesTheSame) {
  train_nine_steps();
  raises(4, {{9, 3}});
  all_promise(3);
  raises(3, {{9, 3}});
  all_promise(2);
  ASSERT_EQ(kept().size(), 1u);
  const World left_out = w;
  EXPECT_EQ(raises(2, {{9, 2}}, "another"), Reason::kRegrouped);
  EXPECT_EQ(kept().size(), 1u);
  w = left_out;
  EXPECT_EQ(raises(2, {{9, 2}}), Reason::kEndedWorkerFailed);
  expect_script_at_fault();
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_THAT(w.ends[0].message, HasSubstr("two workers at slot 3, whose samples count again"));
}

TEST_F(Raised, WhatIsLeftOutForAnotherErrorOrOfAnotherBatchStaysSo) {
  for (const Step later : {0, 1}) {
    w = World(small_options(5, 100));
    policy("skip");
    train_nine_steps();
    raises(4, {{9, 3}});
    for (ConnectionId c : {1, 2, 3, 5}) w.promise_at(c, 9);
    raises(3, {{9, 3}});
    for (ConnectionId c : {1, 2, 5}) w.promise_at(c, 9);
    ASSERT_EQ(kept().size(), 1u);
    const std::string error = later == 0 ? "another" : kError;
    EXPECT_EQ(raises(2, {{9 + later, 2}}, error), Reason::kRegrouped);
    EXPECT_EQ(raises(1, {{9 + later, 1}}, error), Reason::kEndedWorkerFailed);
    EXPECT_EQ(kept().size(), 1u);
  }
}

// Any bad sample would cause its two deaths at the first slot.
TEST_F(Raised, AWorkerAloneIsNotTakenThroughTheWholeStep) {
  train_alone_past_two_deaths();
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(raises(1, {{9, 1}}), Reason::kEndedWorkerFailed);
  expect_script_at_fault();
}

TEST_F(Raised, AnotherCoordinatorKnowsForWhatASlotIsLeftOut) {
  train_alone_past_two_deaths();
  w.state.experience = {};
  next_term();
  EXPECT_EQ(raises(1, {{9, 1}}), Reason::kEndedWorkerFailed);
  expect_script_at_fault();
}

TEST_F(Raised, AllTurnsOfTheBatchComeBack) {
  w.options.shape.turns = 2;
  w.options.total_steps = 400;
  train_nine_steps();
  raises(4, {{10, 3}});
  all_promise(3);
  raises(3, {{10, 3}});
  all_promise(2);
  ASSERT_EQ(kept().size(), 2u);
  EXPECT_EQ(raises(2, {{10, 2}}), Reason::kEndedWorkerFailed);
  EXPECT_TRUE(kept().empty());
}

TEST_F(Raised, AnErrorIsComparedUpToALimit) {
  const std::string longest(limits::kErrorBytes, 'x');
  train_nine_steps();
  raises(4, {{9, 3}}, longest + "a");
  EXPECT_EQ(raises(3, {{9, 2}}, longest + "b"), Reason::kEndedWorkerFailed);
}

// Else it would register again, to fail again.
TEST_F(Raised, WhoFailedIsLetGoAtOnce) {
  train_nine_steps();
  EXPECT_EQ(raises(4, {{9, 3}}), Reason::kRegrouped);
  ASSERT_EQ(w.sent(4).size(), 1u);
  EXPECT_EQ(w.sent(4)[0].goodbye().exit_code(), 70u);
  EXPECT_THAT(w.sent(4)[0].goodbye().message(), HasSubstr(kError));
  EXPECT_EQ(raises(3, {{9, 2}}), Reason::kEndedWorkerFailed);
  ASSERT_EQ(w.sent(3).size(), 1u);
  EXPECT_EQ(w.sent(3)[0].goodbye().exit_code(), 64u);
}

// The word that lets it go leaves before its connection is closed.
TEST_F(Raised, WhoFailedAsTheLastOneHearsOfTheEndOfTheRun) {
  w = World(small_options(1, 100));
  policy("stop");
  train_nine_steps();
  w.hello(World::kAgent, {1000});
  raises(1, {{9, 0}});
  w.exit(World::kAgent, 1000, 70, 0, "", true, {{9, 0}});
  next_term();
  EXPECT_EQ(raises(1, {{9, 0}}), Reason::kEndedPoison);
  ASSERT_EQ(w.sent(1).size(), 1u);
  EXPECT_EQ(w.sent(1)[0].goodbye().exit_code(), 65u);
  EXPECT_TRUE(std::holds_alternative<CloseConnection>(w.actions.back()));
}

}  // namespace
}  // namespace lockstep::coordinator
