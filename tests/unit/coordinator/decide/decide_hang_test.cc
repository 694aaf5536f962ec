// The member that lags is the one that hangs, although every heartbeat comes in time.
#include <algorithm>

#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

Options with_hang(uint32_t workers, int64_t hang_ms = 20'000) {
  Options options = small_options(workers, 100);
  options.hang_ms = hang_ms;
  return options;
}

void beat_at(World& w, ConnectionId c, Step step, uint32_t bucket, Phase phase = Phase::kTrain) {
  wire::Envelope e;
  e.mutable_heartbeat()->set_step(step);
  e.mutable_heartbeat()->set_phase(static_cast<uint32_t>(phase));
  e.mutable_heartbeat()->set_bucket(bucket);
  EXPECT_EQ(w.say(c, e), Reason::kHeard);
}

// All say for `ms` that their hosts have enqueued all 8 buckets of step 5, and how many of them
// their GPUs have finished.
Reason stay_with_gpus(World& w, const std::vector<uint32_t>& finished, int64_t ms) {
  for (int64_t waited = 0; waited < ms; waited += 500) {
    for (size_t i = 0; i < finished.size(); ++i) {
      wire::Envelope e;
      e.mutable_heartbeat()->set_step(5);
      e.mutable_heartbeat()->set_bucket(finished[i]);
      e.mutable_heartbeat()->set_enqueued(8);
      EXPECT_EQ(w.say(i + 1, e), Reason::kHeard);
    }
    const Reason reason = w.wait(500);
    if (reason != Reason::kNothingDue) return reason;
  }
  return Reason::kNothingDue;
}

// All say for `ms` where they are, `at` by connection from 1 on: buckets of step 5.
Reason stay(World& w, const std::vector<uint32_t>& at, int64_t ms, Phase phase = Phase::kTrain) {
  for (int64_t waited = 0; waited < ms; waited += 500) {
    for (size_t i = 0; i < at.size(); ++i) beat_at(w, i + 1, 5, at[i], phase);
    const Reason reason = w.wait(500);
    if (reason != Reason::kNothingDue) return reason;
  }
  return Reason::kNothingDue;
}

TEST(Hang, OneThatIsBehindAmongSevenThatWaitForItGoesAndItsStackIsSaved) {
  World w(with_hang(8));
  w.train();
  EXPECT_EQ(stay(w, {1, 1, 0, 1, 1, 1, 1, 1}, 19'000), Reason::kNothingDue);
  EXPECT_EQ(stay(w, {1, 1, 0, 1, 1, 1, 1, 1}, 2'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks.size(), 7u);
  EXPECT_EQ(w.state.members.at(3).state, MemberState::kDead);
  const auto sent = w.sent(3);
  ASSERT_FALSE(sent.empty());
  ASSERT_TRUE(sent.front().has_evict());
  EXPECT_TRUE(sent.front().evict().save_stack());
}

TEST(Hang, AGpuThatStandsStillIsTheCulpritThoughItsHostHasEnqueuedEverything) {
  World w(with_hang(4));
  w.train();
  EXPECT_EQ(stay_with_gpus(w, {8, 8, 8, 3}, 21'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks.size(), 3u);
  EXPECT_EQ(w.state.members.at(4).state, MemberState::kDead);
  EXPECT_TRUE(std::any_of(w.actions.begin(), w.actions.end(), [](const Action& action) {
    const auto* line = std::get_if<LogLine>(&action);
    return line != nullptr && line->message.find("GPU has finished 3 of 8") != std::string::npos;
  }));
}

// A stuck kernel of NCCL itself: every GPU has finished its own part.
TEST(Hang, WhereAllGpusHaveFinishedTheirPartTheSameMembersTryOnce) {
  World w(with_hang(4));
  w.train();
  EXPECT_EQ(stay_with_gpus(w, {8, 8, 8, 8}, 21'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks.size(), 4u);
}

TEST(Hang, WhoGetsFurtherHoweverSlowlyKeepsEveryoneIn) {
  World w(with_hang(3));
  w.train();
  for (uint32_t bucket = 0; bucket < 5; ++bucket)
    EXPECT_EQ(stay(w, {9, bucket, 9}, 15'000), Reason::kNothingDue);
  EXPECT_EQ(w.state.generation, 1u);
}

TEST(Hang, WhereNobodyIsBehindTheSameMembersTryOnceAndThenTheTermEnds) {
  World w(with_hang(3));
  w.train();
  EXPECT_EQ(stay(w, {1, 1, 1}, 21'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks.size(), 3u);
  for (ConnectionId c : {1, 2, 3}) {
    wire::Envelope e;
    e.mutable_promise()->set_generation(w.state.generation);
    e.mutable_promise()->set_has_state(true);
    e.mutable_promise()->mutable_applied()->set_step(0);
    e.mutable_promise()->set_lived(1);
    w.say(c, e);
  }
  ASSERT_EQ(w.state.run, RunState::kStarted);
  Reason reason = Reason::kNothingDue;
  for (int i = 0; i < 170 && reason == Reason::kNothingDue; ++i) {
    for (ConnectionId c : {1, 2, 3}) beat_at(w, c, 0, 1);
    reason = w.wait(500);
  }
  EXPECT_EQ(reason, Reason::kEndedTerm);
}

TEST(Hang, MoreThanHalfBehindMeansThatSomethingElseIsWrong) {
  World w(with_hang(4));
  w.train();
  EXPECT_EQ(stay(w, {0, 0, 0, 1}, 21'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks.size(), 4u);
}

// When exactly half of the members lag, the others wait for them.
TEST(Hang, TwoOfFourThatAreBehindGoTogether) {
  World w(with_hang(4));
  w.train();
  EXPECT_EQ(stay(w, {0, 1, 0, 1}, 21'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{2, 4}));
}

TEST(Hang, AnEvaluationMayTakeFourTimesAsLong) {
  World w(with_hang(2));
  w.train();
  EXPECT_EQ(stay(w, {0, 0}, 75'000, Phase::kEval), Reason::kNothingDue);
  EXPECT_EQ(stay(w, {0, 0}, 10'000, Phase::kEval), Reason::kRegrouped);
}

TEST(Hang, AnEvaluationThatScoresBatchesMayTakeAnyTime) {
  World w(with_hang(3));
  w.train();
  for (const uint32_t batch : {1, 2, 3, 0, 1, 2})  // made again after the third
    EXPECT_EQ(stay(w, {batch, 9, 9}, 75'000, Phase::kEval), Reason::kNothingDue) << batch;
  EXPECT_EQ(w.state.generation, 1u);
  EXPECT_EQ(stay(w, {2, 9, 9}, 10'000, Phase::kEval), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks.size(), 3u) << "shares are not equal, so nobody is blamed";
}

TEST(Hang, TheFirstStepOfAGenerationMayTakeFourTimesAsLong) {
  World w(with_hang(2));
  w.train();
  Reason reason = Reason::kNothingDue;
  int64_t waited_ms = 0;
  for (; reason == Reason::kNothingDue && waited_ms < 100'000; waited_ms += 500) {
    beat_at(w, 1, 0, 0);
    beat_at(w, 2, 0, 1);
    reason = w.wait(500);
  }
  EXPECT_EQ(reason, Reason::kRegrouped);
  EXPECT_GT(waited_ms, 79'000);
}

TEST(Hang, AStepMayTakeEightTimesAsLongAsTheSlowestBefore) {
  World w(with_hang(2));
  w.train();
  EXPECT_EQ(stay(w, {0, 0}, 10'000), Reason::kNothingDue);  // step 5
  for (int i = 0; i < 20; ++i) {                            // step 6 comes 10 s later
    beat_at(w, 1, 6, 0);
    beat_at(w, 2, 6, 1);
    EXPECT_EQ(w.wait(500), Reason::kNothingDue);
  }
  EXPECT_EQ(w.state.slowest_ms, 10'000);
  for (int i = 0; i < 120; ++i) {
    beat_at(w, 1, 6, 0);
    beat_at(w, 2, 6, 1);
    EXPECT_EQ(w.wait(500), Reason::kNothingDue);
  }
}

TEST(Hang, WhileADebuggerHasStoppedOneEverybodyWaitsAndAfterwardsFromTheBeginning) {
  World w(with_hang(3));
  w.train();
  for (int i = 0; i < 200; ++i) {
    for (ConnectionId c : {1, 2, 3}) {
      wire::Envelope e;
      e.mutable_heartbeat()->set_step(5);
      e.mutable_heartbeat()->set_bucket(c == 2 ? 0 : 1);
      e.mutable_heartbeat()->set_paused(c == 2);
      w.say(c, e);
    }
    ASSERT_EQ(w.wait(500), Reason::kNothingDue);
  }
  EXPECT_EQ(stay(w, {1, 0, 1}, 19'000), Reason::kNothingDue);
  EXPECT_EQ(stay(w, {1, 0, 1}, 2'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.members.at(2).state, MemberState::kDead);
}

TEST(Hang, AMemberThatADebuggerHasStoppedOwesNoPromiseBeforeItGoesOn) {
  World w(small_options(3, 100));
  w.train();
  w.kill(3);
  EXPECT_EQ(w.promise_at(1, 5), Reason::kPromised);
  const auto wait = [&](bool is_paused) {
    for (ConnectionId c : {1, 2}) {
      wire::Envelope e;
      e.mutable_heartbeat()->set_paused(is_paused && c == 2);
      w.say(c, e);
    }
    return w.wait(500);
  };
  const int64_t timeout_ms = w.options.prepare_timeout_ms;
  for (int64_t ms = 0; ms < 3 * timeout_ms; ms += 500) ASSERT_EQ(wait(true), Reason::kNothingDue);
  // Its time begins when it goes on.
  Reason reason = Reason::kNothingDue;
  int64_t waited_ms = 0;
  for (; reason == Reason::kNothingDue && waited_ms < 3 * timeout_ms; waited_ms += 500)
    reason = wait(false);
  EXPECT_EQ(reason, Reason::kEvictedUnpromised);
  EXPECT_GE(waited_ms, timeout_ms);
}

TEST(Hang, ZeroMeansNever) {
  World w(with_hang(3, 0));
  w.train();
  EXPECT_EQ(stay(w, {1, 0, 1}, 100'000), Reason::kNothingDue);
}

}  // namespace
}  // namespace lockstep::coordinator
