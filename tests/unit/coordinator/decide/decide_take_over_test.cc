// A coordinator that begins while its workers train.
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

MemberEntry entry_of(MemberId id) {
  return {id, 1, "n", static_cast<uint32_t>(id) - 1, 999 + static_cast<uint32_t>(id)};
}

// Generation 4 of two workers, begun at step 10; 12 steps are complete.
Beginning living_term() {
  Beginning b;
  b.run_id = "test";
  b.term = 2;
  b.next_member = 3;
  b.generation = 4;
  b.completed = 12;
  b.is_identity_stored = true;
  b.living.emplace();
  LivingGeneration& living = *b.living;
  living.generation = 4;
  living.row = {4, {10, Phase::kTrain}, std::nullopt, false, "death"};
  living.start.mutable_resume()->set_step(10);
  living.start.set_writer(1);
  living.start.set_total_steps(100);
  living.start.mutable_buckets()->add_bounds(0);
  living.start.mutable_buckets()->add_bounds(64);
  for (MemberId id : {1, 2}) {
    wire::MemberInfo* info = living.start.add_members();
    info->set_member(id);
    info->set_rank(static_cast<uint32_t>(id) - 1);
    info->mutable_slots()->set_begin(static_cast<uint32_t>(id - 1) * 2);
    info->mutable_slots()->set_end(static_cast<uint32_t>(id) * 2);
    info->set_node("n");
    living.members.push_back(entry_of(id));
    living.batches[id] = 3;
  }
  return b;
}

wire::Register back(ConnectionId c, Generation generation, Step since) {
  wire::Register m = World::registration(static_cast<uint32_t>(c) - 1);
  m.set_member(c);
  m.set_generation(generation);
  m.set_has_state(true);
  m.mutable_since()->set_step(since);
  m.mutable_applied()->set_step(20);
  return m;
}

void add_planned(Beginning& b) {
  b.living->planned = LivingGeneration::Planned{};
  b.living->planned->generation = 5;
  b.generation = 5;
  wire::Start& start = b.living->planned->start;
  start = b.living->start;
  start.clear_resume();
  start.mutable_source()->add_members(1);
  start.mutable_members()->RemoveLast();
  start.mutable_members(0)->mutable_slots()->set_end(4);
}

TEST(TakeOver, TrainingGoesOnAndRecordsAreTakenFromWhereTheJournalEnds) {
  World w(small_options(2, 100), living_term());
  EXPECT_EQ(w.state.run, RunState::kStarted);
  EXPECT_EQ(w.join(1, back(1, 4, 10)), Reason::kReconnected);
  EXPECT_TRUE(w.sent(1).back().has_start());  // pushed again
  EXPECT_EQ(w.join(2, back(2, 4, 10)), Reason::kReconnected);
  EXPECT_EQ(w.report(1, 3, 11, 12), Reason::kAlreadyCounted);
  EXPECT_EQ(w.report(1, 4, 12, 15), Reason::kRecordsAccepted);
  EXPECT_EQ(w.report(2, 4, 12, 14), Reason::kRecordsAccepted);
  EXPECT_EQ(w.history.size(), 2u);
  EXPECT_EQ(w.history[0].step, 12u);
  EXPECT_TRUE(w.ends.empty());
}

TEST(TakeOver, AProcessThatAnEarlierCoordinatorTookInAsANewerMemberIsNotTheOldOneAgain) {
  Beginning b = living_term();
  b.next_member = 4;
  World w(small_options(2, 100), b);
  w.join(1, back(1, 4, 10));
  wire::Register m = World::registration(1);  // the process of member 2
  m.set_member(3);
  EXPECT_EQ(w.join(2, m), Reason::kNewIdentity);
  EXPECT_EQ(w.state.members.at(2).state, MemberState::kDead);
  EXPECT_EQ(w.state.by_connection.at(2), 4u);
  EXPECT_EQ(w.state.run, RunState::kPrepared) << "without member 2";
  EXPECT_EQ(w.report(2, 1, 12, 13), Reason::kRecordsVoid) << "its first batch is no old one";
}

TEST(TakeOver, AScaleBeforeTheAgentIsBackReachesIt) {
  World w(small_options(2, 100), living_term());
  EXPECT_EQ(w.scale(3), Reason::kCommandDone);
  EXPECT_TRUE(w.sent(World::kAgent).empty());
  w.hello(World::kAgent, {1000, 1001});
  ASSERT_FALSE(w.sent(World::kAgent).empty());
  EXPECT_EQ(w.sent(World::kAgent).back().set_workers().workers(), 3u);
}

// The journal of a run whose coordinator dies right after its last answer.
Beginning after_death_of_coordinator(World& w) {
  Beginning b = living_term();
  b.settings = w.journal.load()->settings;
  return b;
}

wire::Command drain_of_member(MemberId id) {
  wire::Command command;
  command.set_drain_member(id);
  return command;
}

TEST(TakeOver, ADrainThatWasAnsweredAndNotPlannedYetIsStillDue) {
  World before(small_options(2, 100), living_term());
  before.join(1, back(1, 4, 10));
  ASSERT_EQ(before.command(drain_of_member(2)), Reason::kCommandDone);
  ASSERT_FALSE(before.state.planned) << "member 2 is away";
  World w(small_options(2, 100), after_death_of_coordinator(before));
  w.join(1, back(1, 4, 10));
  w.join(2, back(2, 4, 10));
  ASSERT_TRUE(w.state.planned);
  EXPECT_EQ(w.state.planned->ranks, std::vector<MemberId>{1});
  w.switched(1, w.state.planned->generation, 21);
  w.hello(World::kAgent, {1000, 1001});
  EXPECT_TRUE(w.state.ordered_to_leave.contains(2));
  w.exit(World::kAgent, 1001, 0, 0);
  EXPECT_FALSE(w.state.ordered_to_leave.contains(2)) << "the order is carried out";
}

TEST(TakeOver, AProcessThatWasDrainedDoesNotComeBackAsANewMember) {
  World before(small_options(2, 100), living_term());
  ASSERT_EQ(before.command(drain_of_member(2)), Reason::kCommandDone);
  Beginning b = after_death_of_coordinator(before);
  b.living->start.mutable_members()->RemoveLast();  // it was left out, and has not heard so
  b.living->members.pop_back();
  b.living->start.mutable_members(0)->mutable_slots()->set_end(4);
  World w(small_options(2, 100), b);
  w.join(1, back(1, 4, 10));
  EXPECT_EQ(w.join(2, back(2, 4, 10)), Reason::kDrainRequested);
  EXPECT_TRUE(w.sent(2).back().has_goodbye());
  EXPECT_FALSE(w.state.planned);
  // Nor under its newer number, if that coordinator dies, too.
  EXPECT_TRUE(w.state.ordered_to_leave.contains(3));
  EXPECT_FALSE(w.state.ordered_to_leave.contains(2));
}

TEST(TakeOver, ADrainedNodeKeepsNoWorkersAlsoIfItsAgentHasNotHeardSo) {
  World before(small_options(2, 100), living_term());
  ASSERT_EQ(before.drain_node("n"), Reason::kCommandDone);
  ASSERT_TRUE(before.state.stop_ms) << "nobody would stay";
  World w(small_options(2, 100), after_death_of_coordinator(before));
  w.hello(World::kAgent, {1000, 1001});
  ASSERT_FALSE(w.sent(World::kAgent).empty());
  EXPECT_EQ(w.sent(World::kAgent).back().set_workers().workers(), 0u);
  w.join(1, back(1, 4, 10));
  EXPECT_TRUE(w.sent(1).back().has_stop());
}

// Member 2 of node o was told to leave, and has not left; nor has o's agent come back.
TEST(TakeOver, AScaleKnowsHowManyWorkersANodeWasOrderedToKeepBeforeItsAgentIsBack) {
  Beginning b = living_term();
  b.living->members[1].node = "o";
  b.living->start.mutable_members(1)->set_node("o");
  b.settings = {{"keeps o", "0"}, {"leaving 2", "1"}};
  World w(small_options(2, 100), b);
  ASSERT_EQ(w.scale(1), Reason::kCommandDone);
  EXPECT_TRUE(w.state.emptied.empty()) << "o was drained, so it is not asked when others are gone";
  EXPECT_EQ(w.state.workers_of_node.at("o"), 0u);
}

TEST(TakeOver, AScaleThatWasAnsweredReachesAnAgentThatHasNotHeardOfIt) {
  World before(small_options(2, 100), living_term());
  before.hello(World::kAgent, {1000, 1001});
  ASSERT_EQ(before.scale(3), Reason::kCommandDone);
  World w(small_options(2, 100), after_death_of_coordinator(before));
  w.hello(World::kAgent, {1000, 1001});
  ASSERT_FALSE(w.sent(World::kAgent).empty());
  EXPECT_EQ(w.sent(World::kAgent).back().set_workers().workers(), 3u);
}

TEST(TakeOver, AStopThatWasAnsweredIsAStopForTheNextCoordinator) {
  World before(small_options(2, 100), living_term());
  wire::Command command;
  command.set_stop(true);
  ASSERT_EQ(before.command(command), Reason::kCommandDone);
  World w(small_options(2, 100), after_death_of_coordinator(before));
  w.join(1, back(1, 4, 10));
  EXPECT_TRUE(w.sent(1).back().has_stop());
  // Otherwise nothing is left to stop: the term would begin from a checkpoint.
  Beginning b = after_death_of_coordinator(before);
  b.living.reset();
  World v(small_options(2, 100), b);
  EXPECT_EQ(v.wait(100), Reason::kEndedStopped);
  EXPECT_EQ(v.ends.back().exit_code, 75);
}

TEST(TakeOver, ReportsFromBeforeCountOnce) {
  Beginning b = living_term();
  World helper(small_options(2, 100));
  const wire::Envelope e = helper.records(1, 3, 12, 14);
  RecordsEntry batch{4, 1, 3, {}};
  for (const auto& record : e.step_records().records()) batch.records.push_back(record);
  b.living->unfinished.push_back(batch);
  World w(small_options(2, 100), b);
  w.join(1, back(1, 4, 10));
  w.join(2, back(2, 4, 10));
  EXPECT_EQ(w.report(2, 4, 12, 15), Reason::kRecordsAccepted);
  EXPECT_EQ(w.history.size(), 2u);
  EXPECT_EQ(w.report(1, 4, 14, 15), Reason::kRecordsAccepted);
  EXPECT_EQ(w.history.size(), 3u);
}

TEST(TakeOver, OlderBatchesStillCountForStepsOfARowThatIsClosed) {
  Beginning b = living_term();
  b.completed = 8;
  b.living->closed.push_back({3, {2, Phase::kTrain}, ResumePoint{10, Phase::kTrain}, false, ""});
  World w(small_options(2, 100), b);
  w.join(1, back(1, 4, 10));
  EXPECT_EQ(w.report_of(3, 1, 4, 8, 10), Reason::kRecordsAccepted);
  EXPECT_EQ(w.history.size(), 2u);
  EXPECT_EQ(w.report(1, 5, 10, 12), Reason::kRecordsAccepted);
}

// Step 9 was applied by member 2 alone, and the state went to member 1.
TEST(TakeOver, AStepWhoseOnlyRecordDiedIsNotGoneOnFrom) {
  for (const Step applied_by_the_other : {9, 10}) {
    Beginning b = living_term();
    b.completed = 9;
    b.living->closed.push_back({3, {2, Phase::kTrain}, ResumePoint{10, Phase::kTrain}, false, ""});
    b.living->worked = {{1, {{3, 2, applied_by_the_other}}}, {2, {{3, 2, 10}}}};
    World w(small_options(2, 100), b);
    w.join(1, back(1, 4, 10));
    w.hello(World::kAgent, {1000});
    EXPECT_EQ(w.promise_at(1, 10),
              applied_by_the_other == 9 ? Reason::kEndedTerm : Reason::kStarted);
  }
}

TEST(TakeOver, NobodyIsJudgedByItsSilenceBeforeALeaseButAProofCountsAtOnce) {
  World w(small_options(2, 100), living_term());
  EXPECT_EQ(w.wait(4'900), Reason::kNothingDue);
  World v(small_options(2, 100), living_term());
  v.join(1, back(1, 4, 10));
  EXPECT_EQ(v.hello(World::kAgent, {1000}), Reason::kRegrouped);
  EXPECT_EQ(v.state.generation, 5u);
  EXPECT_EQ(v.promise_at(1, 20), Reason::kStarted);
  EXPECT_EQ(v.started().resume().step(), 20u);
}

TEST(TakeOver, AMemberThatDoesNotComeBackIsDeadAfterTheLease) {
  World w(small_options(2, 100), living_term());
  w.join(1, back(1, 4, 10));
  EXPECT_EQ(w.wait_alive(7'000), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, std::vector<MemberId>{1});
}

TEST(TakeOver, APreparedGenerationIsAbandonedAndTheNextOneIsPrepared) {
  Beginning b = living_term();
  b.generation = 5;  // prepared when the coordinator died
  World w(small_options(2, 100), b);
  w.join(1, back(1, 4, 10));
  EXPECT_EQ(w.wait(100), Reason::kRegrouped);
  EXPECT_EQ(w.state.generation, 6u);
  EXPECT_TRUE(w.sent(1).back().has_prepare());
  w.join(2, back(2, 4, 10));
  EXPECT_TRUE(w.sent(2).back().has_prepare());
  w.promise_at(1, 20);
  EXPECT_EQ(w.promise_at(2, 20), Reason::kStarted);
}

TEST(TakeOver, AStartThatWasNeverPushedIsPushedToWhoPromisedIt) {
  World w(small_options(2, 100), living_term());
  EXPECT_EQ(w.join(1, back(1, 3, 2)), Reason::kReconnected);
  EXPECT_TRUE(w.sent(1).back().has_start());
  EXPECT_EQ(w.sent(1).back().generation(), 4u);
}

TEST(TakeOver, ASwitchThatHappenedMeanwhileIsLearntFromWhoRegisters) {
  Beginning b = living_term();
  add_planned(b);
  World w(small_options(2, 100), b);
  w.join(1, back(1, 5, 16));
  EXPECT_EQ(w.state.generation, 5u);
  EXPECT_EQ(w.state.resume.step, 16u);
  EXPECT_EQ(w.journal.load()->ledger.back().first.step, 16u);
  EXPECT_TRUE(w.state.leavers.contains(2));
}

TEST(TakeOver, APlannedChangeIsPushedAgainToWhoDidNotSwitch) {
  Beginning b = living_term();
  add_planned(b);
  World w(small_options(2, 100), b);
  w.join(2, back(2, 4, 10));
  EXPECT_TRUE(w.sent(2).back().has_planned());
  EXPECT_EQ(w.sent(2).back().generation(), 5u);
}

TEST(TakeOver, AnUnknownIdIsANewcomer) {
  World w(small_options(2, 100), living_term());
  EXPECT_EQ(w.join(7, back(7, 3, 2)), Reason::kNewIdentity);
  EXPECT_EQ(w.sent(7).front().registered().member(), 3u);
}

}  // namespace
}  // namespace lockstep::coordinator
