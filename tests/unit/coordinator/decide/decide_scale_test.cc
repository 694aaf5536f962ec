// Tests which nodes a `scale` takes workers from.
#include <optional>

#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

constexpr ConnectionId kFarAgent = 51;

// Returns how many workers the last event told the other agent to keep, or nothing without news.
std::optional<uint32_t> told_to_far_agent(const World& w) {
  std::optional<uint32_t> told;
  for (const wire::Envelope& e : w.sent(kFarAgent))
    if (e.has_set_workers()) told = e.set_workers().workers();
  return told;
}

// The agent of node `other` keeps one worker, which is there. The agent of node n keeps two, one of
// which died and is not started again.
World two_nodes_with_an_empty_place(const std::string& other) {
  World w(small_options(3, 100));
  for (ConnectionId c : {1, 2}) w.join(c);
  wire::Register far = World::registration(2);
  far.set_node(other);
  w.join(3, far);
  w.promise(1), w.promise(2), w.promise(3);
  w.hello(World::kAgent, {1000, 1001});
  wire::Envelope e;
  e.mutable_agent_hello()->set_node(other);
  e.mutable_agent_hello()->set_workers(1);
  e.mutable_agent_hello()->add_living(1002);
  w.say(kFarAgent, e);
  w.kill(2);
  w.promise_at(1, 0);
  w.promise_at(3, 0);
  return w;
}

TEST(Scale, AScaleTakesEmptyPlacesBeforeWorkersThatLive) {
  World w = two_nodes_with_an_empty_place("o");
  ASSERT_EQ(w.state.run, RunState::kStarted);
  EXPECT_EQ(w.scale(2), Reason::kCommandDone);
  EXPECT_FALSE(told_to_far_agent(w)) << "two live, and two are wanted";
  EXPECT_EQ(w.sent(World::kAgent).back().set_workers().workers(), 1u);
  EXPECT_TRUE(w.state.emptied.empty());
  EXPECT_FALSE(w.state.planned);
}

TEST(Scale, AScaleDoesNotEmptyTheNodeOfTheOnlyWorkerThatLives) {
  World w = two_nodes_with_an_empty_place("o");
  w.kill(1);
  w.promise_at(3, 0);
  ASSERT_EQ(w.state.run, RunState::kStarted);
  EXPECT_EQ(w.scale(1), Reason::kCommandDone);
  EXPECT_FALSE(told_to_far_agent(w));
  EXPECT_EQ(w.sent(World::kAgent).back().set_workers().workers(), 0u);
}

// No agent has told the coordinator yet which processes the order started.
TEST(Scale, ADeathOfTheLastWorkerWaitsForThoseThatAScaleHasJustStarted) {
  for (const uint32_t wanted : {3u, 1u}) {
    World w(small_options(1, 100));
    w.train();
    w.hello(World::kAgent, {1000});
    w.report(1, 1, 0, 5);
    EXPECT_EQ(w.scale(wanted), Reason::kCommandDone);
    EXPECT_EQ(w.exit(World::kAgent, 1000, -1, 9),
              wanted == 3 ? Reason::kEndedTerm : Reason::kEndedDeath);
  }
}

// The worker that was to stay died while more lived than were wanted. So the agent starts one in
// the place of the worker that the scale let go, once that process has ended (worker_slots.h).
TEST(Scale, ADeathOfTheLastWorkerWaitsForTheEndOfWhomTheScaleHasLetGo) {
  for (const bool will_restart : {true, false}) {
    World w(small_options(2, 100));
    w.hello(World::kAgent, {});  // before its workers are there
    w.train();
    w.report(1, 1, 0, 3);
    w.report(2, 1, 0, 3);
    EXPECT_EQ(w.scale(1), Reason::kCommandDone);
    w.switched(1, 2, 4);
    w.drained(2, 4);
    ASSERT_EQ(w.state.members.at(2).state, MemberState::kGone);
    EXPECT_EQ(w.exit(World::kAgent, 1000, -1, 9), Reason::kAwaitsProof);
    EXPECT_EQ(w.exit(World::kAgent, 1001, 0, 0, "", will_restart),
              will_restart ? Reason::kEndedTerm : Reason::kEndedDeath);
  }
}

TEST(Scale, AScaleTakesThePlaceOfAnExpelledWorkerFirst) {
  World w = two_nodes_with_an_empty_place("o");
  w.state.checks.expelled.insert(Place{"n", 0});
  EXPECT_EQ(w.scale(1), Reason::kCommandDone);
  EXPECT_FALSE(told_to_far_agent(w)) << "the worker there computes right";
  EXPECT_EQ(w.sent(World::kAgent).back().set_workers().workers(), 0u);
}

// Ranks follow the numbers in names, so the worker of o10 is the last one.
TEST(Scale, AScaleTakesFromTheNodeWhoseWorkersLeave) {
  World w(small_options(2, 100));
  for (const ConnectionId c : {1, 2}) {
    wire::Register m = World::registration(static_cast<uint32_t>(c) - 1);
    m.set_node(c == 1 ? "o9" : "o10");
    w.join(c, m);
    wire::Envelope e;
    e.mutable_agent_hello()->set_node(m.node());
    e.mutable_agent_hello()->set_workers(1);
    e.mutable_agent_hello()->add_living(m.pid());
    w.say(c == 1 ? World::kAgent : kFarAgent, e);
  }
  w.promise(1), w.promise(2);
  EXPECT_EQ(w.scale(1), Reason::kCommandDone);
  EXPECT_EQ(told_to_far_agent(w), 0u);
  EXPECT_TRUE(w.sent(World::kAgent).empty());
  EXPECT_EQ(w.state.planned->ranks, std::vector<MemberId>{1});
}

}  // namespace
}  // namespace lockstep::coordinator
