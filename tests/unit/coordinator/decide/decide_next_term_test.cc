// decide() where too few are left: the term ends, and the next one waits for others.
#include "tests/unit/coordinator/decide/recovery.h"

namespace lockstep::coordinator {
namespace {

TEST(Recovery, AllKilledWithReplacementsToComeTheNextTermBegins) {
  World w(small_options(2, 100));
  w.train();
  EXPECT_EQ(w.kill(1, true), Reason::kRegrouped);
  EXPECT_EQ(w.kill(2, true), Reason::kEndedTerm);
  EXPECT_TRUE(w.ends.empty());
  EXPECT_EQ(w.journal.generations().at(1), GenerationState::kClosed);
  EXPECT_EQ(w.join(9), Reason::kIgnored);  // the next term is asked
}

// The only node is drained while a term waits for workers, one of which had just died.
TEST(Recovery, ATermAllOfWhoseNodesWereDrainedStopsAndAwaitsNoReplacement) {
  Beginning b = second_term();
  Options options = small_options(2, 100);
  options.min_workers = 2;
  World w(options, b);
  w.hello(World::kAgent, {1000, 1001});
  w.join(1);
  w.exit(World::kAgent, 1001, -1, 9, "", true);
  EXPECT_EQ(w.drain_node("n"), Reason::kCommandDone);
  EXPECT_TRUE(w.state.replacements.empty());
  w.exit(World::kAgent, 1000, 75, 0, "", true);  // told before its agent heard of the order
  EXPECT_TRUE(w.state.replacements.empty());
  EXPECT_EQ(w.wait(w.options.lease_ms + 200), Reason::kEndedStopped);
  EXPECT_EQ(w.ends[0].exit_code, 75);
}

TEST(Recovery, AfterAFailureOfTheLastOneTheProofOfItsEndDecides) {
  for (const bool will_restart : {true, false}) {
    World w(small_options(1, 100));
    w.train();
    w.hello(50);
    EXPECT_EQ(w.leave(1, wire::Leave::FAILED, 0, Code::kInternal, "disk full"),
              Reason::kAwaitsProof);
    EXPECT_EQ(w.exit(50, 1000, 70, 0, "", will_restart),
              will_restart ? Reason::kEndedTerm : Reason::kEndedDeath);
  }
}

TEST(Recovery, AStoppedProcessOfAnEarlierTermIsAwaitedWhenTheLastWorkerDies) {
  Beginning b = second_term();
  World w(small_options(1, 100), b);
  w.join(1);
  w.promise(1);
  w.hello(World::kAgent, {1000, 4711});  // the second one is not heard of in this term
  EXPECT_EQ(w.kill(1), Reason::kAwaitsProof);
  World v = w;
  EXPECT_EQ(v.exit(World::kAgent, 4711, -1, 9), Reason::kEndedDeath);
  EXPECT_EQ(w.wait(w.options.lease_ms + 1'000), Reason::kEndedTerm);
  EXPECT_TRUE(w.ends.empty());
}

TEST(Recovery, ANewTermHasNoSourcesWhateverItsMembersClaim) {
  Beginning b = second_term();
  b.generation = 5;
  b.base = {10, Phase::kTrain};
  b.base_checkpoint = "/run/checkpoints/step-0000000010-g5-m1";
  World w(small_options(2, 100), b);
  wire::Register m = World::registration(0);
  m.set_member(1);
  m.set_generation(5);
  m.set_has_state(true);
  m.mutable_applied()->set_step(14);
  EXPECT_EQ(w.join(1, m), Reason::kNewIdentity);
  w.join(2);
  w.promise_at(1, 14, 5, 10);
  EXPECT_EQ(w.promise(2), Reason::kStarted);
  EXPECT_EQ(w.started().resume().step(), 10u);
  EXPECT_EQ(w.started().source().checkpoint_path(), b.base_checkpoint);
}

constexpr ConnectionId kOtherAgent = 51;

void hello_of_other(World& w, uint32_t workers) {
  wire::Envelope e;
  e.mutable_agent_hello()->set_node("o");
  e.mutable_agent_hello()->set_workers(workers);
  w.say(kOtherAgent, e);
}

TEST(Recovery, ANodeThatAScaleLeftWithoutWorkersIsAskedForSomeWhenTheOthersAreGone) {
  for (const bool is_scaled : {true, false}) {  // else it never had any
    SCOPED_TRACE(is_scaled);
    World w(small_options(2, 100));
    w.train();
    w.hello(World::kAgent, {1000, 1001});
    hello_of_other(w, is_scaled ? 3 : 0);
    if (is_scaled) {
      EXPECT_EQ(w.scale(2), Reason::kCommandDone);
    }
    EXPECT_EQ(w.kill(1), Reason::kRegrouped);
    EXPECT_EQ(w.kill(2), is_scaled ? Reason::kEndedTerm : Reason::kEndedDeath);
    const std::vector<wire::Envelope> told = w.sent(kOtherAgent);
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told[0].has_set_workers(), is_scaled);
    EXPECT_EQ(told[0].set_workers().workers(), is_scaled ? 2u : 0u);
  }
}

Beginning later_term_with_an_emptied_node() {
  Beginning b = second_term();
  b.settings["emptied o"] = "1";
  return b;
}

TEST(Recovery, WhoCannotBeginIsNotReplacedByAnEmptiedNode) {
  World w(small_options(1, 100), later_term_with_an_emptied_node());
  w.train();
  w.report(1, 1, 0, 5);
  hello_of_other(w, 0);
  w.hello(World::kAgent, {1000});
  EXPECT_EQ(w.exit(World::kAgent, 1000, 78, 0), Reason::kEndedDeath);
  EXPECT_FALSE(w.is_durable("others_called"));
}

TEST(Recovery, ALaterTermAsksAnEmptiedNodeAfterALeaseWithoutAnybodyOnTheWay) {
  for (const bool is_one_on_the_way : {false, true}) {
    SCOPED_TRACE(is_one_on_the_way);
    World w(small_options(2, 100), later_term_with_an_emptied_node());
    hello_of_other(w, 0);
    if (is_one_on_the_way) w.hello(World::kAgent, {1000});
    w.wait(w.options.lease_ms - 500);
    EXPECT_FALSE(w.is_durable("others_called"));
    w.wait(1'000);
    EXPECT_EQ(w.is_durable("others_called"), !is_one_on_the_way);
  }
}

// Its agent says again how its last worker had ended, for which it started no other one.
TEST(Recovery, AnEmptiedNodeThatIsAskedIsWaitedFor) {
  World w(small_options(1, 100), later_term_with_an_emptied_node());
  hello_of_other(w, 0);
  w.exit(kOtherAgent, 2000, -1, 9);
  w.wait(w.options.lease_ms + 200);
  ASSERT_TRUE(w.is_durable("others_called"));
  EXPECT_EQ(w.wait(1'000), Reason::kNothingDue);
  EXPECT_TRUE(w.ends.empty());
}

TEST(Recovery, AnEmptiedNodeIsKnownToLaterTermsUntilAScaleGivesItWorkers) {
  World w(small_options(2, 100));
  w.train();
  w.hello(World::kAgent, {1000, 1001});
  hello_of_other(w, 1);
  w.scale(2);
  EXPECT_EQ(w.journal.load()->settings.at("emptied o"), "1");
  w.scale(3);
  EXPECT_FALSE(w.journal.load()->settings.contains("emptied o"));
}

TEST(Recovery, ALaterTermBeginsWithFewerWorkersAfterALeaseOfWaiting) {
  Beginning b = second_term();
  World w(small_options(3, 100), b);
  w.join(1);
  w.join(2);
  EXPECT_EQ(w.wait_alive(5'000), Reason::kNothingDue);
  EXPECT_EQ(w.wait_alive(1'000), Reason::kPrepared);
  EXPECT_EQ(w.state.ranks.size(), 2u);
}

TEST(Recovery, ALaterTermWhoseLastWorkerSaysThatItCannotBeginEndsAtOnce) {
  Beginning b = second_term();
  World w(small_options(2, 100), b);
  w.hello(World::kAgent, {1000, 1001});
  EXPECT_EQ(w.exit(World::kAgent, 1000, 65, 0), Reason::kIgnored) << "the other one may come";
  EXPECT_EQ(w.exit(World::kAgent, 1001, 65, 0, "truncated"), Reason::kEndedDeath);
  EXPECT_EQ(w.ends[0].exit_code, 65);
}

TEST(Recovery, ALaterTermWithTooFewWorkersEndsWith75IfItCanGoOnLater) {
  for (const bool has_checkpoint : {true, false}) {
    Beginning b = second_term();
    if (has_checkpoint) b.checkpoints.push_back({"step-0000000001-g1-m1", 1, 1, 1, {}, {}});
    World w(small_options(3, 100), b);
    w.options.min_workers = 2;
    w.join(1);
    EXPECT_EQ(w.wait_alive(w.options.min_wait_ms + 1'000), Reason::kEndedTooFew);
    EXPECT_EQ(w.ends[0].exit_code, has_checkpoint ? 75 : 70);
  }
}

TEST(Recovery, BelowTheMinimumTheRestWritesACheckpointAndTheNextTermWaits) {
  Options options = small_options(3, 100);
  options.min_workers = 3;
  World w(options);
  train_three(w, 5);
  w.kill(3);
  w.promise_at(1, 5);
  EXPECT_EQ(w.promise_at(2, 5), Reason::kStarted);
  EXPECT_TRUE(w.sent(1).back().has_stop());
  w.report(1, 2, 5, 6);
  w.report(2, 2, 5, 6);
  w.checkpoint(1, 6, true);
  w.leave(1, wire::Leave::STOPPED, 6);
  EXPECT_EQ(w.leave(2, wire::Leave::STOPPED, 6), Reason::kEndedTerm);
  EXPECT_TRUE(w.ends.empty());
}

TEST(Recovery, AStopIsPushedAgainAfterEveryStart) {
  World w(small_options(3, 100));
  train_three(w, 5);
  w.happen(StopSignal{"SIGTERM"});
  w.kill(3);
  EXPECT_EQ(w.happen(StopSignal{"again"}), Reason::kAlreadyCounted);
  w.promise_at(1, 5);
  EXPECT_EQ(w.promise_at(2, 5), Reason::kStarted);
  EXPECT_TRUE(w.sent(1).back().has_stop());
  EXPECT_TRUE(w.sent(2).back().has_stop());
}

}  // namespace
}  // namespace lockstep::coordinator
