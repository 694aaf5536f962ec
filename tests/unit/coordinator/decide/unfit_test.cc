// Notices of agents about GPUs that are not fit: who leaves, who stays, and who comes back.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

using ::testing::HasSubstr;

Options options_of(uint32_t workers, uint32_t min_workers = 1, const std::string& mode = "act") {
  Options options = small_options(workers, 100);
  options.min_workers = min_workers;
  options.job.mutable_cluster()->set_gpu_health(mode);
  return options;
}

struct UnfitGpus : testing::Test {
  // Workers 0, 1, ... of node n and their agent. They train.
  static World training(Options options) {
    World w(std::move(options));
    w.train();
    hello(w);
    return w;
  }
  static void hello(World& w, ConnectionId agent = World::kAgent) {
    std::vector<uint32_t> living;
    for (const auto& [process, id] : w.state.by_process) living.push_back(process.second);
    w.hello(agent, living);
  }
  static Reason notice(World& w, uint32_t local_rank, bool undo = false,
                       const std::string& reason = "rows wait",
                       ConnectionId agent = World::kAgent) {
    wire::Envelope e;
    e.mutable_node_notice()->set_source("gpu");
    e.mutable_node_notice()->set_reason(reason);
    e.mutable_node_notice()->add_local_ranks(local_rank);
    e.mutable_node_notice()->set_undo(undo);
    return w.say(agent, e);
  }
  // The planned change takes place, and its leaver has gone.
  static void switch_over(World& w, MemberId leaver) {
    const Generation next = w.state.planned->generation;
    const std::vector<MemberId> ranks = w.state.planned->ranks;
    for (MemberId id : ranks) w.switched(w.state.members.at(id).connection, next, 4);
    w.drained(w.state.members.at(leaver).connection, 4);
    EXPECT_EQ(w.state.members.at(leaver).state, MemberState::kGone);
    w.exit(World::kAgent, w.state.members.at(leaver).pid, 0, 0);
  }
  static std::string text_of(const World& w, const std::string& kind) {
    std::string text;
    for (const EventEntry& e : w.journal.events())
      if (e.kind == kind) text = e.text;
    return text;
  }
};

TEST_F(UnfitGpus, AWorkerWhoseGpuIsUnfitIsPlannedOutAndTheJournalSaysWhy) {
  World w = training(options_of(3));
  EXPECT_EQ(notice(w, 1), Reason::kNoticed);
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(w.state.planned->ranks, (std::vector<MemberId>{1, 3}));
  EXPECT_THAT(text_of(w, "gpu_unfit"), HasSubstr("local rank 1 of node n"));
  EXPECT_THAT(text_of(w, "gpu_unfit"), HasSubstr("rows wait"));
  EXPECT_EQ(notice(w, 1), Reason::kAlreadyCounted) << "it may be told again";
  switch_over(w, 2);
  EXPECT_FALSE(w.state.stop_ms);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1, 3}));
  w.wait_alive(1'000);
  EXPECT_FALSE(w.state.planned);
}

TEST_F(UnfitGpus, WhereTooFewWouldStayItIsToldAndTheWorkerStays) {
  World w = training(options_of(2, 2));
  EXPECT_EQ(notice(w, 1), Reason::kNoticed);
  w.wait_alive(1'000);
  EXPECT_FALSE(w.state.planned);
  EXPECT_FALSE(w.state.stop_ms);
  EXPECT_THAT(text_of(w, "gpu_unfit"), HasSubstr("cluster.min_workers"));
  w.join(3);  // another one at a fit place: now enough stay
  w.wait_alive(500);
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(w.state.planned->ranks, (std::vector<MemberId>{1, 3}));
}

TEST_F(UnfitGpus, WhereAllGpusAreUnfitOneWorkerGoesOn) {
  World w = training(options_of(2));
  notice(w, 0);
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(w.state.planned->ranks, std::vector<MemberId>{2});
  notice(w, 1);
  switch_over(w, 1);
  w.wait_alive(1'000);
  EXPECT_FALSE(w.state.planned);
  EXPECT_FALSE(w.state.stop_ms);
  EXPECT_EQ(w.state.ranks, std::vector<MemberId>{2});
}

TEST_F(UnfitGpus, WithTellOrOffNobodyLeaves) {
  World told = training(options_of(2, 1, "tell"));
  EXPECT_EQ(notice(told, 1), Reason::kNoticed);
  EXPECT_THAT(text_of(told, "gpu_unfit"), HasSubstr("cluster.gpu_health"));
  told.wait_alive(1'000);
  EXPECT_FALSE(told.state.planned);
  World off = training(options_of(2, 1, "off"));
  EXPECT_EQ(notice(off, 1), Reason::kIgnored);
  EXPECT_FALSE(off.is_durable("gpu_unfit"));
}

TEST_F(UnfitGpus, AWorkerThatStartsThereAllTheSameIsTurnedAwayUntilTheGpuIsFit) {
  World w = training(options_of(2));
  notice(w, 1);
  switch_over(w, 2);
  wire::Register again = World::registration(1);
  again.set_pid(2001);
  w.join(3, again);
  w.wait_alive(200);
  EXPECT_EQ(w.state.members.at(3).state, MemberState::kGone);
  EXPECT_EQ(w.state.members.at(3).farewell, 75) << "its place is wanted";
  w.exit(World::kAgent, 2001, 75, 0);
  EXPECT_EQ(notice(w, 1, true), Reason::kNoticed);
  EXPECT_TRUE(w.is_durable("gpu_fit"));
  EXPECT_EQ(notice(w, 1, true), Reason::kAlreadyCounted);
  again.set_pid(2002);
  w.join(4, again);
  w.wait_alive(200);
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(w.state.planned->ranks, (std::vector<MemberId>{1, 4}));
}

TEST_F(UnfitGpus, AnUndoBeforeTheChangeIsPlannedLeavesEverythingAsItWas) {
  World w = training(options_of(2));
  w.state.suspicion = Suspicion{w.now_ms, {}, "a peer broke"};  // no change can be planned
  notice(w, 1);
  EXPECT_FALSE(w.state.planned);
  notice(w, 1, true);
  w.state.suspicion.reset();
  w.wait_alive(500);
  EXPECT_FALSE(w.state.planned);
}

// The agent is the witness: a term, or a coordinator that took over, hears it again.
TEST_F(UnfitGpus, AnAgentThatConnectsAgainRepeatsItsNoticesOrTheyAreOver) {
  World w = training(options_of(2, 2));  // no worker leaves
  notice(w, 1);
  hello(w, 51);
  EXPECT_FALSE(w.state.unfit.begin()->second.is_current);
  EXPECT_EQ(notice(w, 1, false, "rows wait", 51), Reason::kNoticed);
  EXPECT_TRUE(w.state.unfit.begin()->second.is_current);
  size_t told = 0;
  for (const EventEntry& e : w.journal.events()) told += e.kind == "gpu_unfit" ? 1 : 0;
  EXPECT_EQ(told, 1u) << "the same agent says the same";
}

TEST_F(UnfitGpus, AfterADeathAnUnfitNewcomerIsTakenOnlyIfTooFewAreLeft) {
  for (const uint32_t min_workers : {1u, 2u}) {
    World w = training(options_of(2, min_workers));
    w.state.unfit[{"n", 2}] = {0, "rows wait", true};
    w.state.suspicion = Suspicion{w.now_ms, {}, "a peer broke"};  // it is not turned away
    w.join(3);
    w.state.suspicion.reset();
    w.kill(2);
    EXPECT_EQ(w.state.ranks,
              min_workers == 1 ? std::vector<MemberId>{1} : (std::vector<MemberId>{1, 3}));
  }
}

TEST_F(UnfitGpus, AFirstStartDoesWithoutUnfitPlacesAndTheRestBegins) {
  World w(options_of(3));
  w.hello(World::kAgent, {1000, 1001});
  EXPECT_EQ(notice(w, 2), Reason::kNoticed);
  w.join(1);
  EXPECT_EQ(w.join(2), Reason::kPrepared);
  w.promise(1);
  EXPECT_EQ(w.promise(2), Reason::kStarted);
}

TEST_F(UnfitGpus, ANoticeAfterTheOthersHaveComeBeginsTheRun) {
  World w(options_of(3));
  w.join(1);
  w.join(2);
  w.hello(World::kAgent, {1000, 1001});
  EXPECT_EQ(notice(w, 2), Reason::kPrepared);
}

TEST_F(UnfitGpus, AFirstStartWithoutEnoughFitGpusEndsAndNamesThemAndTheWayOut) {
  World w(options_of(2, 2));
  w.hello(World::kAgent, {1000});
  EXPECT_EQ(notice(w, 1), Reason::kEndedMissingWorkers);
  EXPECT_EQ(w.state.exit_code, 78);
  for (const char* word : {"local rank 1 of node n", "rows wait", "cluster.gpu_health=tell"})
    EXPECT_THAT(w.state.message, HasSubstr(word));
}

TEST_F(UnfitGpus, ALaterTermDoesNotWaitForWorkersOfUnfitPlaces) {
  World w(options_of(3), second_term());
  w.hello(World::kAgent, {1000, 1001});
  notice(w, 2);
  w.join(1);
  EXPECT_EQ(w.join(2), Reason::kPrepared);
}

// The local ranks that the last event called to unfit places.
std::vector<uint32_t> called(const World& w, ConnectionId agent = World::kAgent) {
  std::vector<uint32_t> all;
  for (const wire::Envelope& e : w.sent(agent))
    for (const uint32_t local_rank : e.set_workers().unfit_local_ranks()) all.push_back(local_rank);
  return all;
}

// Training alone, with the place of local rank 1 held.
World alone_beside_a_held_place() {
  World w = UnfitGpus::training(options_of(2));
  UnfitGpus::notice(w, 1);
  UnfitGpus::switch_over(w, 2);
  return w;
}

TEST_F(UnfitGpus, AHeldPlaceIsCalledWhenTheLastFitWorkerDiesForGood) {
  World w = alone_beside_a_held_place();
  EXPECT_EQ(w.kill(1, /*will_restart=*/true), Reason::kEndedTerm);
  EXPECT_EQ(called(w), std::vector<uint32_t>{}) << "its own place has one again";

  World last = alone_beside_a_held_place();
  EXPECT_EQ(last.kill(1), Reason::kEndedTerm);
  EXPECT_EQ(called(last), std::vector<uint32_t>{1});
  EXPECT_THAT(text_of(last, "unfit_called"), HasSubstr("local rank 1 of node n (rows wait)"));
  ASSERT_FALSE(last.sent(World::kAgent).empty());
  EXPECT_EQ(last.sent(World::kAgent)[0].set_workers().workers(), 2u) << "as many as it keeps";
}

TEST_F(UnfitGpus, ThePlaceOfADrainedNodeIsNotCalled) {
  World w = alone_beside_a_held_place();
  w.state.workers_of_node["n"] = 0;
  EXPECT_EQ(w.kill(1), Reason::kEndedStopped);
  EXPECT_TRUE(called(w).empty());
}

TEST_F(UnfitGpus, ALaterTermWithTooFewCallsAsManyHeldPlacesAsItLacks) {
  World w(options_of(4, 2), second_term());
  w.hello(World::kAgent, {1000});
  for (const uint32_t local_rank : {1u, 2u, 3u}) notice(w, local_rank);
  w.join(1);
  w.exit(World::kAgent, 1003, 1, 0, "", false);  // this place is given up
  EXPECT_EQ(w.wait_alive(w.options.lease_ms), Reason::kNothingDue);
  std::vector<uint32_t> all;
  for (int i = 0; i < 10; ++i) {
    w.beat_all();
    w.wait(100);
    for (const uint32_t local_rank : called(w)) all.push_back(local_rank);
  }
  EXPECT_EQ(all, std::vector<uint32_t>{1}) << "one is missing, and it is called once";
  EXPECT_EQ(w.join(2), Reason::kPrepared);
}

// Its GPU fell off the bus, and the agent started another worker for it, in vain.
TEST_F(UnfitGpus, TheVerdictOfAnotherPlacesWorkerEndsNoRunBeforeAHeldPlaceWasTried) {
  World w(options_of(2), second_term());
  w.hello(World::kAgent, {1000});
  notice(w, 1);
  EXPECT_EQ(w.exit(World::kAgent, 1000, 78, 0, "the GPU is gone"), Reason::kIgnored);
  EXPECT_EQ(called(w), std::vector<uint32_t>{1});
  EXPECT_EQ(w.exit(World::kAgent, 1001, 78, 0, "this one is gone, too"), Reason::kEndedDeath);
  EXPECT_EQ(w.state.exit_code, 78);
}

TEST_F(UnfitGpus, ANoticeThatNamesNoPlaceIsRefused) {
  World w = training(options_of(2));
  wire::Envelope e;
  e.mutable_node_notice()->set_source("gpu");
  EXPECT_EQ(w.say(World::kAgent, e), Reason::kRefusedMalformed);
}

// Its agent acts; here it is told, once for a reason.
TEST_F(UnfitGpus, ANoticeAboutTheWholeNodeIsToldAndChangesNothing) {
  World w = training(options_of(2));
  wire::Envelope envelope;
  wire::NodeNotice& about = *envelope.mutable_node_notice();
  about.set_source("cloud");
  about.set_reason("n is to be taken away in 0:30 (GCP preemption); its workers leave\n");
  EXPECT_EQ(w.say(World::kAgent, envelope), Reason::kNoticed);
  EXPECT_THAT(text_of(w, "node_notice"), HasSubstr("n is to be taken away in 0:30"));
  EXPECT_EQ(w.say(World::kAgent, envelope), Reason::kAlreadyCounted);
  hello(w);  // that it keeps no workers any more
  EXPECT_EQ(w.say(World::kAgent, envelope), Reason::kAlreadyCounted);
  about.set_reason("another one");
  EXPECT_EQ(w.say(World::kAgent, envelope), Reason::kNoticed);
  about.set_undo(true);
  EXPECT_EQ(w.say(World::kAgent, envelope), Reason::kIgnored);
  about.add_local_ranks(0);
  EXPECT_EQ(w.say(World::kAgent, envelope), Reason::kRefusedMalformed);
  w.wait_alive(1'000);
  EXPECT_FALSE(w.state.planned);
  EXPECT_TRUE(w.state.unfit.empty());
}

}  // namespace
}  // namespace lockstep::coordinator
