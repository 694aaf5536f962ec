// Tests what a process hears after it was left out, and what becomes of one that does not end.
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

constexpr uint32_t kPidOfThird = 1002;

const wire::Envelope* order_to_kill(const World& w) {
  for (const Action& action : w.actions) {
    const auto* send = std::get_if<Send>(&action);
    if (send != nullptr && send->envelope->has_kill_worker()) return send->envelope.get();
  }
  return nullptr;
}

// The first two workers and the agent are heard of for `ms`. Returns how often the agent was told
// to kill the third.
int kills_within(World& w, int64_t ms) {
  int kills = 0;
  for (const int64_t until = w.now_ms + ms; w.now_ms < until;) {
    w.now_ms += 100;
    for (ConnectionId c : {1, 2}) w.beat(c);
    w.happen(Tick{});
    if (const wire::Envelope* order = order_to_kill(w)) {
      EXPECT_EQ(order->kill_worker().pid(), kPidOfThird);
      ++kills;
    }
    if (w.state.run != RunState::kPrepared) continue;
    for (ConnectionId c : {1, 2})
      w.state.source_generation == 0 ? w.promise(c) : w.promise_at(c, 0);
  }
  return kills;
}

World with_three(const std::vector<uint32_t>& living = {1000, 1001, kPidOfThird}) {
  World w(small_options(3, 100));
  w.hello(World::kAgent, living);
  w.train();
  return w;
}

// Three workers train; the third has fallen silent and is out.
World with_a_silent_third() {
  World w = with_three();
  w.happen(ConnectionClosed{3, "stopped"});
  EXPECT_EQ(kills_within(w, w.options.lease_ms + 200), 0);
  EXPECT_EQ(w.state.members.at(3).state, MemberState::kDead);
  return w;
}

wire::Register return_of_third() {
  wire::Register m = World::registration(2);
  m.set_member(3);
  return m;
}

// The third of three was told to go, is over the boundary of the change that leaves it out and has
// said that it is done; then it lost its connection, and the others came over the boundary.
World with_a_lost_goodbye(bool is_preempted) {
  World w(small_options(3, 100));
  w.hello(World::kAgent, {1000, 1001, kPidOfThird});
  w.train();
  if (is_preempted) {
    EXPECT_EQ(w.drain(3), Reason::kDrainRequested);
  } else {
    wire::Command command;
    command.set_drain_member(3);
    EXPECT_EQ(w.command(command), Reason::kCommandDone);
  }
  w.switched(1, 2, 4);
  EXPECT_EQ(w.drained(3, 4, 1), Reason::kDrained);
  w.happen(ConnectionClosed{3, "reset"});
  w.switched(2, 2, 4);
  EXPECT_EQ(w.state.members.at(3).state, MemberState::kGone);
  return w;
}

TEST(Farewell, APreemptedWorkerThatMissedItIsToldToBeStartedAgainWhenItRegisters) {
  World w = with_a_lost_goodbye(true);
  EXPECT_EQ(w.join(9, return_of_third()), Reason::kAlreadyCounted);
  ASSERT_EQ(w.sent(9).size(), 1u);
  EXPECT_EQ(w.sent(9)[0].goodbye().exit_code(), 75u);
}

TEST(Farewell, AWorkerThatIsNotWantedAnyMoreEndsForGoodWhenItRegisters) {
  World w = with_a_lost_goodbye(false);
  w.join(9, return_of_third());
  ASSERT_TRUE(w.sent(9).at(0).has_goodbye());
  EXPECT_EQ(w.sent(9)[0].goodbye().exit_code(), 0u);
}

TEST(Farewell, WhoIsLeftOutAnywayAndToldToGoBesidesIsStartedAgain) {
  World w(small_options(3, 100));
  w.train();
  wire::Command command;
  command.set_drain_member(3);
  w.command(command);
  EXPECT_EQ(w.drain(3), Reason::kAlreadyCounted);
  EXPECT_EQ(w.state.members.at(3).farewell, 75);
}

TEST(Farewell, BeforeTrainingBeginsItsAgentStartsAnother) {
  World w(small_options(3, 100));
  w.join(1);
  w.drain(1);
  EXPECT_EQ(w.sent(1).at(0).goodbye().exit_code(), 75u);
}

TEST(LeftOver, AProcessThatStaysStoppedIsKilledOnceAfterOneMoreLease) {
  World w = with_a_silent_third();
  EXPECT_EQ(kills_within(w, w.options.lease_ms - 500), 0);
  EXPECT_EQ(kills_within(w, 1'000), 1);
  EXPECT_TRUE(w.is_durable("left_over_killed"));
  EXPECT_EQ(kills_within(w, 5 * w.options.lease_ms), 0);
}

TEST(LeftOver, OneThatRegistersAnewInTimeIsSpared) {
  World w = with_a_silent_third();
  kills_within(w, w.options.lease_ms / 2);
  EXPECT_EQ(w.join(4, return_of_third()), Reason::kNewIdentity);
  for (int i = 0; i < 10; ++i) {
    w.beat(4);
    EXPECT_EQ(kills_within(w, w.options.lease_ms / 2), 0);
  }
}

TEST(LeftOver, OneThatHasEndedIsNotKilled) {
  World w = with_a_silent_third();
  w.exit(World::kAgent, kPidOfThird, -1, 9);
  EXPECT_EQ(kills_within(w, 5 * w.options.lease_ms), 0);
}

TEST(LeftOver, ItHasItsLeaseFromWhenItsAgentIsBackAndIsKilledIfTheAgentStillHasIt) {
  World w = with_a_silent_third();
  w.happen(ConnectionClosed{World::kAgent, "reset"});
  EXPECT_EQ(kills_within(w, 5 * w.options.lease_ms), 0) << "nobody is there who could do it";
  w.hello(World::kAgent + 1, {1000, 1001, kPidOfThird});
  EXPECT_EQ(kills_within(w, w.options.lease_ms - 500), 0);
  EXPECT_EQ(kills_within(w, 1'000), 1);
}

TEST(LeftOver, AnAgentThatComesBackWithoutItHasNothingToKill) {
  World w = with_a_silent_third();
  w.happen(ConnectionClosed{World::kAgent, "reset"});
  w.hello(World::kAgent + 1, {1000, 1001});
  EXPECT_EQ(kills_within(w, 5 * w.options.lease_ms), 0);
}

TEST(LeftOver, ACoordinatorThatWasAsleepGivesItTheTimeThatItSlept) {
  World w = with_a_silent_third();
  w.now_ms += 10 * w.options.lease_ms;
  EXPECT_EQ(w.happen(Tick{}), Reason::kClockJumped);
  EXPECT_EQ(kills_within(w, w.options.lease_ms / 2), 0);
  EXPECT_EQ(kills_within(w, w.options.lease_ms), 1);
}

TEST(LeftOver, WhatAProcessHasSaidBeforeItsEndIsRefusedAfterItsAgentHasToldIt) {
  World w(small_options(1, 100));
  w.hello(World::kAgent, {1000});
  wire::Envelope e;
  e.mutable_worker_exit()->set_pid(1000);
  e.mutable_worker_exit()->set_process(4711);
  e.mutable_worker_exit()->set_signal(9);
  e.mutable_worker_exit()->set_will_restart(true);
  w.say(World::kAgent, e);
  wire::Register late = World::registration(0);
  late.set_process(4711);
  EXPECT_EQ(w.join(1, late), Reason::kRefusedGone);
  EXPECT_TRUE(w.state.members.empty());
  late.set_process(4712);  // its successor has the same number
  EXPECT_EQ(w.join(2, late), Reason::kPrepared);
}

// A term after another one, in which two of three workers are enough.
World later_term(const Experience& experience = {}) {
  Options options = small_options(3, 100);
  options.min_workers = 2;
  World w(options, second_term());
  w.state.experience = experience;
  return w;
}

// The agent lists the third, which was alive in the term before or was never heard of.
World later_term_without_the_third(const Experience& experience = {}) {
  World w = later_term(experience);
  w.hello(World::kAgent, {1000, 1001, kPidOfThird});
  for (ConnectionId c : {1, 2}) w.join(c);
  return w;
}

// The third died in a term, and the next one begins with the agent's list.
TEST(LeftOver, WhoWasDeclaredDeadInTheTermBeforeHasALeaseToRegister) {
  const World before = with_a_silent_third();
  for (const uint64_t process : {uint64_t{0}, uint64_t{4711}}) {
    SCOPED_TRACE(process);  // another process that has got the same number is none of those
    World w = later_term(before.state.experience);
    ASSERT_EQ(w.state.experience.known.count({"n", kPidOfThird}), 1u);
    if (process != 0) w.state.experience.known[{"n", kPidOfThird}] = process + 1;
    wire::Envelope e;
    e.mutable_agent_hello()->set_node("n");
    e.mutable_agent_hello()->add_living(kPidOfThird);
    e.mutable_agent_hello()->add_living_process(process);
    w.say(World::kAgent, e);
    for (ConnectionId c : {1, 2}) w.join(c);
    EXPECT_EQ(kills_within(w, w.options.lease_ms - 500), 0);
    EXPECT_EQ(kills_within(w, 1'000), process == 0 ? 1 : 0);
  }
}

// It was stopped for good between two terms, so that none of them has seen it die.
TEST(LeftOver, WhoWasAliveInTheTermBeforeHasALeaseToRegister) {
  World before = with_three();
  World w = later_term_without_the_third(before.state.experience);
  EXPECT_EQ(kills_within(w, w.options.lease_ms - 500), 0);
  EXPECT_EQ(kills_within(w, 1'000), 1);
}

// Its process may run code after its loop.
TEST(LeftOver, WhoHasLeftInTheTermBeforeIsNotAwaited) {
  World before = with_three();
  before.leave(3, wire::Leave::DRAINED, 0);
  World w = later_term_without_the_third(before.state.experience);
  EXPECT_EQ(kills_within(w, w.options.lease_ms + 500), 0);
}

// It is to end by itself.
TEST(LeftOver, WhoHasFailedInTheTermBeforeHasItsLeaseToEnd) {
  World before = with_three();
  before.leave(3, wire::Leave::FAILED, 0, Code::kInternal, "because");
  World w = later_term_without_the_third(before.state.experience);
  EXPECT_EQ(kills_within(w, w.options.lease_ms - 500), 0);
  EXPECT_EQ(kills_within(w, 1'000), 1);
}

TEST(LeftOver, InALaterTermOneThatNeverRegistersIsKilled) {
  World w = later_term_without_the_third();
  EXPECT_EQ(kills_within(w, w.options.start_timeout_ms - 1'000), 0);
  EXPECT_EQ(w.state.run, RunState::kStarted);
  EXPECT_EQ(kills_within(w, 2'000), 1);
  EXPECT_EQ(kills_within(w, 2 * w.options.start_timeout_ms), 0);
}

}  // namespace
}  // namespace lockstep::coordinator
