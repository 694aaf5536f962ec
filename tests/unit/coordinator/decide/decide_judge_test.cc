// Tests which members decide() takes for dead: proofs, suspicions, the brake, and steps that kill.
#include "tests/support/sanitized.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

// Workers below `silent` are heard of for `ms`, the others no more.
Reason fall_silent(World& w, ConnectionId silent, int64_t ms) {
  for (int64_t waited = 0; waited < ms; waited += 100) {
    for (ConnectionId c = 1; c < silent; ++c) w.beat(c);
    const Reason reason = w.wait(100);
    if (reason != Reason::kNothingDue) return reason;
  }
  return Reason::kNothingDue;
}

TEST(Judge, ManyThatFallSilentTogetherGetOneMoreLeaseThenTheyGo) {
  World w(small_options(8, 100));
  w.train();
  EXPECT_EQ(fall_silent(w, 6, w.options.lease_ms + 1'000), Reason::kNothingDue);  // 3 of 8
  EXPECT_TRUE(w.is_durable("evictions_held"));
  EXPECT_EQ(fall_silent(w, 6, w.options.lease_ms), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks.size(), 5u);
}

TEST(Judge, AProofIsNotHeldByTheBrake) {
  World w(small_options(8, 100));
  w.train();
  fall_silent(w, 6, w.options.lease_ms + 500);
  EXPECT_EQ(w.kill(8), Reason::kRegrouped);
}

TEST(Judge, TwoThatFallSilentGoAtOnce) {
  World w(small_options(8, 100));
  w.train();
  EXPECT_EQ(fall_silent(w, 7, w.options.lease_ms + 1'000), Reason::kRegrouped);
}

// Eight workers on two nodes; all connections of the second node are closed, its agent's too.
World with_a_silent_node() {
  World w(small_options(8, 100));
  for (ConnectionId c = 1; c <= 8; ++c) {
    wire::Register m = World::registration(static_cast<uint32_t>(c) - 1);
    m.set_node(c <= 4 ? "a" : "b");
    w.join(c, m);
  }
  for (ConnectionId c = 1; c <= 8; ++c) w.promise(c);
  for (ConnectionId c = 5; c <= 8; ++c) w.happen(ConnectionClosed{c, "reset"});
  return w;
}

TEST(Judge, ANodeThatTheDataPlaneHasLostTooIsNotHeldByTheBrake) {
  World w = with_a_silent_node();
  w.suspect(1, 5);
  EXPECT_EQ(fall_silent(w, 5, 100), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks.size(), 7u) << "the others may only have lost their connections";
  EXPECT_EQ(fall_silent(w, 5, 300), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1, 2, 3, 4}));
  EXPECT_FALSE(w.is_durable("evictions_held"));
}

TEST(Judge, ANodeWhoseControlConnectionsAloneAreGoneGetsOneMoreLease) {
  World w = with_a_silent_node();
  EXPECT_EQ(fall_silent(w, 5, w.options.lease_ms), Reason::kNothingDue);
  EXPECT_TRUE(w.is_durable("evictions_held"));
}

TEST(Judge, AControlConnectionThatIsBackInTimeCostsNothing) {
  World w(small_options(2, 100));
  w.train();
  w.happen(ConnectionClosed{2, "reset"});
  EXPECT_EQ(w.wait(200), Reason::kNothingDue);
  wire::Register m = World::registration(1);
  m.set_member(2);
  m.set_generation(1);
  EXPECT_EQ(w.join(12, m), Reason::kReconnected);
  EXPECT_EQ(w.wait(1'000), Reason::kNothingDue);
  EXPECT_EQ(w.state.generation, 1u);
}

TEST(Judge, WithAnAgentAClosedConnectionWaitsForTheLease) {
  World w(small_options(2, 100));
  w.train();
  w.hello(World::kAgent, {1000, 1001});
  w.happen(ConnectionClosed{2, "reset"});
  EXPECT_EQ(fall_silent(w, 2, w.options.lease_ms - 500), Reason::kNothingDue);
  EXPECT_EQ(fall_silent(w, 2, 1'500), Reason::kRegrouped);
}

TEST(Judge, AClosedConnectionAndAPeerThatLostItAreADeath) {
  World w(small_options(3, 100));
  w.train();
  w.hello(World::kAgent, {1000, 1001, 1002});
  w.happen(ConnectionClosed{3, "reset"});
  EXPECT_EQ(w.suspect(1, 3), Reason::kSuspected);
  EXPECT_EQ(w.wait(100), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1, 2}));
}

TEST(Judge, AnAgentThatDoesNotHaveAWorkerProvesItsDeath) {
  World w(small_options(3, 100));
  w.train();
  w.happen(ConnectionClosed{3, "reset"});
  EXPECT_EQ(w.hello(World::kAgent, {1000, 1001}), Reason::kRegrouped);
  World v(small_options(3, 100));
  v.train();
  EXPECT_EQ(v.hello(World::kAgent, {1000, 1001}), Reason::kHeard);  // it may be newer than this
  EXPECT_EQ(v.happen(ConnectionClosed{3, "reset"}), Reason::kRegrouped);
}

TEST(Judge, TheOneNamedByMostIsEvictedOnATieTheHigherRankAndDoesNotComeBackSoon) {
  World w(small_options(3, 100));
  w.train();
  w.suspect(1, 3);
  w.suspect(3, 1);
  EXPECT_EQ(w.wait_alive(1'500), Reason::kNothingDue);
  EXPECT_EQ(w.wait_alive(1'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1, 2}));
  w.promise_at(1, 0);
  w.promise_at(2, 0);
  wire::Register m = World::registration(2);
  m.set_member(3);
  EXPECT_EQ(w.join(13, m), Reason::kNewIdentity);
  EXPECT_FALSE(w.state.planned);  // one link is cut for good: it would only be evicted again
  EXPECT_EQ(w.wait_alive(w.options.bar_ms), Reason::kNothingDue);
  EXPECT_TRUE(w.state.planned);
}

TEST(Judge, AProofWithinTheWindowTellsWhoItWas) {
  World w(small_options(3, 100));
  w.train();
  w.suspect(1, 2);
  w.suspect(2, 1);
  EXPECT_EQ(w.kill(3), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1, 2}));
  w.promise_at(1, 0);
  w.promise_at(2, 0);
  EXPECT_EQ(w.wait_alive(3'000), Reason::kNothingDue);
}

TEST(Judge, IfNobodyIsNamedTheSameMembersTryOnceMoreThenTheTermEnds) {
  World w(small_options(2, 100));
  w.train();
  w.suspect(1, 0);
  EXPECT_EQ(w.wait_alive(3'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks.size(), 2u);
  w.promise_at(1, 0);
  w.promise_at(2, 0);
  w.suspect(2, 0);
  EXPECT_EQ(w.wait_alive(3'000), Reason::kEndedTerm);
}

TEST(Judge, BadDataOfAMemberEndsTheRunAMisfitOfANewcomerDoesNot) {
  World w(small_options(2, 100));
  w.train();
  wire::Register other = World::registration(2);
  other.mutable_fingerprint()->set_lines(0, "isa=avx512");
  EXPECT_EQ(w.join(3, other), Reason::kRefusedMisfit);
  EXPECT_EQ(w.sent(3).back().goodbye().exit_code(), 78u);
  EXPECT_TRUE(w.ends.empty());
  w.join(4);
  EXPECT_EQ(w.leave(4, wire::Leave::FAILED, 0, Code::kNoInput, "no such file"),
            Reason::kStandbyDied);
  EXPECT_EQ(w.leave(2, wire::Leave::FAILED, 0, Code::kBadData, "broken record"),
            Reason::kEndedWorkerFailed);
  EXPECT_EQ(w.ends[0].exit_code, 65);
}

TEST(Judge, AFailureOfOneWorkerIsItsDeath) {
  World w(small_options(2, 100));
  w.train();
  EXPECT_EQ(w.leave(2, wire::Leave::FAILED, 0, Code::kInternal, "disk full"), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, std::vector<MemberId>{1});
}

TEST(Judge, AnExitThatIsToldAgainChangesNothing) {
  World w(small_options(3, 100));
  w.train();
  w.kill(3, true);
  w.promise_at(1, 0);
  w.promise_at(2, 0);
  wire::Register m = World::registration(2);
  m.set_pid(2002);
  w.join(4, m);
  EXPECT_TRUE(w.state.replacements.empty());
  EXPECT_EQ(w.exit(World::kAgent, 1002, -1, 9, "", true), Reason::kIgnored);
  EXPECT_TRUE(w.state.replacements.empty());
}

TEST(Judge, TenThousandRegistrationsAreLinear) {
  constexpr uint32_t kWorkers = kIsSanitized ? 1'000 : 10'000;
  World w(small_options(kWorkers, 100));
  w.options.shape.slots = 1;
  for (uint32_t i = 1; i < kWorkers; ++i) {
    wire::Register m = World::registration(i);
    ASSERT_EQ(w.join(i + 100'000, m), Reason::kRegistered);
  }
  EXPECT_EQ(w.state.waiting.size(), kWorkers - 1);
}

}  // namespace
}  // namespace lockstep::coordinator
