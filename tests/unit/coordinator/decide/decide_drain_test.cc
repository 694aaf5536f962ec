// Workers and nodes that are told to leave: who goes, who stays, and when the run stops.
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

// Two workers on node n, whose agent is here, and a third one on node m. They train.
World on_two_nodes() {
  World w(small_options(3, 100));
  for (ConnectionId c : {1, 2}) w.join(c);
  wire::Register far = World::registration(2);
  far.set_node("m");
  w.join(3, far);
  w.promise(1), w.promise(2), w.promise(3);
  w.hello(World::kAgent, {1000, 1001});
  return w;
}

TEST(Planned, AWorkerThatIsToldToGoIsPlannedOutAndTheLastOnesStopTheRun) {
  World w(small_options(2, 100));
  w.train();
  EXPECT_EQ(w.drain(2), Reason::kDrainRequested);
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(w.state.planned->ranks, std::vector<MemberId>{1});
  EXPECT_EQ(w.drain(2), Reason::kAlreadyCounted);
  EXPECT_FALSE(w.state.stop_ms);
  EXPECT_EQ(w.drain(1), Reason::kDrainRequested);
  EXPECT_TRUE(w.state.stop_ms);
  EXPECT_TRUE(w.sent(1).back().has_stop());
}

TEST(Planned, DrainingANodeTakesAllItsWorkersAndItsAgentKeepsNone) {
  World w = on_two_nodes();
  EXPECT_EQ(w.drain_node("n"), Reason::kCommandDone);
  EXPECT_EQ(w.sent(World::kAgent).back().set_workers().workers(), 0u);
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(w.state.planned->ranks, std::vector<MemberId>{3});
}

// The node that was to go on is lost, and the drained workers are killed while they still train.
TEST(Planned, ARunWhoseLastWorkersDieOnADrainedNodeStops) {
  for (const bool is_drained : {true, false}) {
    World w = on_two_nodes();
    if (is_drained) w.drain_node("n");
    w.fail(3, {});
    for (ConnectionId c : {1, 2}) w.promise_at(c, 0);
    w.kill(1);
    EXPECT_EQ(w.kill(2), is_drained ? Reason::kEndedStopped : Reason::kEndedDeath);
    EXPECT_EQ(w.state.exit_code, is_drained ? 75 : 70);
  }
}

// It was starting when its node was drained, or its agent was started again by hand.
TEST(Planned, AWorkerThatComesFromADrainedNodeLeavesAndOneOfANodeThatAScaleEmptiedStays) {
  for (const bool is_drained : {true, false}) {
    World w(small_options(2, 100));
    w.train();
    w.state.workers_of_node["m"] = 0;
    if (!is_drained) w.state.emptied["m"] = 1;
    wire::Register far = World::registration(2);
    far.set_node("m");
    EXPECT_EQ(w.join(3, far), is_drained ? Reason::kDrainRequested : Reason::kRegistered);
    EXPECT_EQ(w.state.members.at(3).state == MemberState::kGone, is_drained);
  }
}

TEST(Planned, DrainingTheOnlyNodeStopsTheRunAlsoIfAWorkerWaitsThere) {
  World w(small_options(2, 100));
  w.train();
  w.join(3);
  w.hello(World::kAgent, {1000, 1001, 1002});
  EXPECT_EQ(w.drain_node("n"), Reason::kCommandDone);
  EXPECT_TRUE(w.state.stop_ms);
}

// Member 2 was to stay when member 1 was told to leave, but for a scale that was planned before.
TEST(Planned, TheLastOneThatWasToldToLeaveStopsTheRunAlsoAfterAChangeThatWasPlannedBefore) {
  World w(small_options(2, 100));
  w.train();
  w.scale(1);
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(w.drain(1), Reason::kDrainRequested);
  EXPECT_FALSE(w.state.stop_ms);
  w.switched(1, 2, 4);
  w.drained(2, 4);
  EXPECT_TRUE(w.state.stop_ms);
}

TEST(Planned, DrainedWorkersThatGoOnAloneAfterADeathStopTheRunUnlessOthersCome) {
  for (const bool comes_another : {false, true}) {
    World w(small_options(2, 100));
    w.train();
    w.hello(World::kAgent, {1000, 1001});
    EXPECT_EQ(w.drain(1), Reason::kDrainRequested);
    w.kill(2, /*will_restart=*/comes_another);
    w.promise_at(1, 0);
    EXPECT_EQ(w.state.run, RunState::kStarted);
    EXPECT_EQ(w.state.stop_ms.has_value(), !comes_another);
    if (!comes_another) continue;
    w.exit(World::kAgent, 2001, 70, 0);  // of the same place, and not started again
    w.wait_alive(500);
    EXPECT_TRUE(w.state.stop_ms);
  }
}

// It is in a generation that has not started: nothing of the run is lost with it.
TEST(Planned, AWorkerThatIsToldToGoBeforeItHasTrainedIsNotTakenAfterADeath) {
  World w(small_options(3, 100));
  w.train();
  w.join(4);
  EXPECT_EQ(w.kill(3), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1, 2, 4}));
  EXPECT_EQ(w.drain(4), Reason::kDrainRequested);
  EXPECT_EQ(w.kill(2), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, std::vector<MemberId>{1});
}

TEST(Planned, AWorkerThatIsToldToGoBeforeARunsFirstStartGoesWhenThatFails) {
  World w(small_options(3, 100));
  for (ConnectionId c = 1; c <= 3; ++c) w.join(c);
  ASSERT_EQ(w.state.run, RunState::kPrepared);
  EXPECT_EQ(w.drain(2), Reason::kDrainRequested);
  w.kill(3, /*will_restart=*/true);
  EXPECT_EQ(w.state.run, RunState::kGathering);
  EXPECT_EQ(w.state.members.at(2).state, MemberState::kGone);
}

TEST(Planned, WhenAllMustGoAndOthersComeTheyJoinFirst) {
  World w(small_options(2, 100));
  w.train();
  w.join(3);
  w.join(4);
  w.drain(1);
  w.drain(2);
  EXPECT_FALSE(w.state.stop_ms);
  // The change that was planned for the first one comes first.
  EXPECT_EQ(w.state.planned->ranks, (std::vector<MemberId>{2, 3}));
  w.switched(2, 2, 4);
  w.switched(3, 2, 4);
  w.drained(1, 4);
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(w.state.planned->ranks, (std::vector<MemberId>{3, 4}));
}

}  // namespace
}  // namespace lockstep::coordinator
