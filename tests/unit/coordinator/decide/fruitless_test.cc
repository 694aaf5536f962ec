// Beginnings that come to nothing are counted, whatever ends them and over terms.
#include "comm/base/limits.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

// Two workers train after `fruitless` beginnings that came to nothing.
World after(uint32_t fruitless) {
  World w(small_options(2, 100));
  w.state.experience.fruitless = fruitless;
  w.train();
  return w;
}

// Worker 1 loses an unknown peer, and nothing proves a death.
Reason break_it(World& w) {
  w.suspect(1, 77);
  for (int64_t waited = 0; waited < 2 * w.options.proof_ms; waited += 100) {
    for (ConnectionId c : {1, 2}) w.beat(c);
    if (const Reason reason = w.wait(100); reason != Reason::kNothingDue) return reason;
  }
  return Reason::kNothingDue;
}

void begin_again(World& w, Step applied) {
  w.promise_at(1, applied);
  EXPECT_EQ(w.promise_at(2, applied), Reason::kStarted);
}

TEST(Fruitless, TheRunEndsWithTheLastCauseWhenItsLimitIsReached) {
  World w = after(limits::kFruitlessBeginnings - 2);
  EXPECT_EQ(break_it(w), Reason::kRegrouped);
  begin_again(w, 0);
  EXPECT_EQ(break_it(w), Reason::kEndedFruitless);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 70);
  for (const char* part : {"reset by peer", "--run-dir /run --resume"})
    EXPECT_NE(w.ends[0].message.find(part), std::string::npos) << w.ends[0].message;
}

TEST(Fruitless, TheCountGoesFromOneTermToTheNext) {
  World w = after(0);
  EXPECT_EQ(break_it(w), Reason::kRegrouped);
  begin_again(w, 0);
  EXPECT_EQ(break_it(w), Reason::kEndedTerm);
  EXPECT_EQ(w.state.experience.fruitless, 2u);
}

TEST(Fruitless, AStepBeginsTheCountAnew) {
  World w = after(limits::kFruitlessBeginnings - 1);
  w.report(1, 1, 0, 1);
  w.report(2, 1, 0, 1);
  EXPECT_EQ(break_it(w), Reason::kRegrouped);
  EXPECT_EQ(w.state.experience.fruitless, 0u);
  begin_again(w, 1);
  EXPECT_NE(break_it(w), Reason::kEndedFruitless);
  EXPECT_EQ(w.state.experience.fruitless, 1u);
}

}  // namespace
}  // namespace lockstep::coordinator
