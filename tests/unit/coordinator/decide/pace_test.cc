// Slots that follow the speed of the workers, and who is slow for long.
#include <algorithm>
#include <random>

#include "coordinator/state/slots.h"
#include "tests/support/sanitized.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

Options rebalanced(uint32_t workers, uint32_t slots) {
  Options options = small_options(workers, 1'000'000);
  options.job.mutable_train()->set_slots(slots);
  options.job.mutable_cluster()->set_rebalance(true);
  return make_options(options.job, options.facts, options.run_dir);
}

// Workers of given speeds that train, five steps a second, and do what they are told.
class Race {
 public:
  Race(const Options& options, const std::vector<uint32_t>& costs_us) : w(options) {
    for (const uint32_t cost : costs_us) cost_us.push_back(cost);
    w.train();
  }

  uint32_t slots_of(MemberId id) const {
    const SlotRun& slots = w.state.members.at(id).slots;
    return slots.end - slots.begin;
  }
  // By rank.
  std::vector<uint32_t> slots() const {
    std::vector<uint32_t> sizes;
    for (MemberId id : w.state.ranks) sizes.push_back(slots_of(id));
    return sizes;
  }

  // Member n has connection n.
  void report(MemberId id) {
    wire::Envelope e = w.records(id, ++batches[id], step, step + 5);
    for (wire::StepRecord& record : *e.mutable_step_records()->mutable_records()) {
      const uint32_t us = cost_us.at(id - 1) * slots_of(id);
      record.mutable_times()->set_data_wait_us(us / 4);
      record.mutable_times()->set_forward_us(us / 4);
      record.mutable_times()->set_backward_us(us - us / 4 * 2);
      record.mutable_times()->set_communication_us(50'000);  // who is fast waits there
    }
    EXPECT_EQ(w.say(id, e), Reason::kRecordsAccepted);
  }

  void switch_over() {
    const std::vector<MemberId> before = w.state.ranks;
    const Generation old = w.state.generation;
    const PlannedGeneration planned = *w.state.planned;
    const std::set<MemberId> stay(planned.ranks.begin(), planned.ranks.end());
    for (MemberId id : planned.ranks) w.switched(id, planned.generation, step);
    for (MemberId id : before) {
      if (stay.contains(id)) continue;
      EXPECT_EQ(w.drained(id, step, old), Reason::kDrained);
      goodbyes[id] = w.sent(id);
    }
    ASSERT_EQ(w.state.generation, planned.generation);
  }

  void run(int64_t ms) {
    for (const int64_t until = w.now_ms + ms; w.now_ms < until;) {
      const std::vector<MemberId> ranks = w.state.ranks;
      for (MemberId id : ranks) report(id);
      step += 5;
      w.beat_all();
      EXPECT_EQ(w.wait(1000), Reason::kNothingDue);
      if (w.state.planned) switch_over();
    }
  }

  void kill(MemberId id) {
    EXPECT_EQ(w.kill(id), Reason::kRegrouped);
    const std::vector<MemberId> ranks = w.state.ranks;
    for (MemberId survivor : ranks) w.promise_at(survivor, step);
    EXPECT_EQ(w.state.run, RunState::kStarted);
  }

  int noted(const std::string& kind) const {
    const auto& events = w.journal.events();
    return static_cast<int>(std::count_if(events.begin(), events.end(),
                                          [&](const EventEntry& e) { return e.kind == kind; }));
  }

  World w;
  std::vector<uint32_t> cost_us;  // of a slot, by member
  std::map<MemberId, uint64_t> batches;
  std::map<MemberId, std::vector<wire::Envelope>> goodbyes;
  Step step = 0;
};

using Sizes = std::vector<uint32_t>;

TEST(Pace, NoWindowIsJudgedWhileTheLastWorkerIsDeadAndItsAgentMayStartAnother) {
  Race race(rebalanced(1, 4), {1000});
  race.run(9'000);
  race.w.hello(World::kAgent);
  EXPECT_EQ(race.w.leave(1, wire::Leave::FAILED, race.step, Code::kInternal, "disk full"),
            Reason::kAwaitsProof);
  EXPECT_EQ(race.w.wait(race.w.options.lease_ms - 500), Reason::kNothingDue);
  EXPECT_GT(race.w.now_ms - race.w.state.speeds.since_ms, 10'000) << "the window is over";
}

TEST(Pace, TwoSlowWorkersOfFourAreGivenFewerSlotsAndNobodyIsExchanged) {
  Race race(rebalanced(4, 16), {1000, 1000, 3000, 3000});
  race.run(19'000);
  EXPECT_EQ(race.w.state.generation, 1u) << "one window may be an accident";
  race.run(5'000);
  EXPECT_EQ(race.w.state.generation, 2u);
  EXPECT_EQ(race.slots(), (Sizes{6, 6, 2, 2}));
  EXPECT_EQ(race.w.state.ranks, (std::vector<MemberId>{1, 2, 3, 4}));
  EXPECT_EQ(race.w.state.start.source().members_size(), 4);
  race.run(60'000);
  EXPECT_EQ(race.w.state.generation, 2u) << "nothing more is to be gained";
  EXPECT_FALSE(race.w.is_regrouped);
}

TEST(Pace, WhoHasRecoveredGetsItsSlotsBack) {
  Race race(rebalanced(2, 8), {1000, 3000});
  race.run(25'000);
  EXPECT_EQ(race.slots(), (Sizes{6, 2}));
  race.cost_us[1] = 1000;
  race.run(35'000);
  EXPECT_EQ(race.slots(), (Sizes{4, 4}));
}

TEST(Pace, SpeedsWithinTwentyPercentAreAllAlike) {
  Race race(rebalanced(4, 16), {1000, 1190, 1000, 850});
  race.run(60'000);
  EXPECT_EQ(race.w.state.generation, 1u);
  EXPECT_EQ(race.slots(), (Sizes{4, 4, 4, 4}));
  race.kill(2);
  const auto runs = assign_slots(std::vector<uint32_t>(3, 0), 16);
  for (MemberId id : race.w.state.ranks) {
    EXPECT_EQ(race.w.state.members.at(id).slots, runs[race.w.state.members.at(id).rank]);
  }
}

TEST(Pace, OneSlowWindowChangesNothing) {
  Race race(rebalanced(2, 8), {1000, 3000});
  race.run(10'000);
  race.cost_us[1] = 1000;
  race.run(60'000);
  EXPECT_EQ(race.w.state.generation, 1u);
}

TEST(Pace, WhereEverybodyHasOneSlotNothingCanBeMoved) {
  Race race(rebalanced(4, 4), {1000, 1000, 1000, 1900});
  race.run(60'000);
  EXPECT_EQ(race.w.state.generation, 1u);
}

TEST(Pace, SwitchedOffNeitherSlotsNorWorkersAreExchanged) {
  Options options = rebalanced(3, 12);
  options.job.mutable_cluster()->set_rebalance(false);
  Race race(options, {1000, 1000, 9000, 1000});
  race.w.join(4);
  race.run(90'000);
  EXPECT_EQ(race.w.state.generation, 1u);
  EXPECT_FALSE(race.w.is_durable("slow_worker"));
}

TEST(Pace, AShorterStepIsNotMeasured) {
  Options options = rebalanced(2, 8);
  options.shape.global_batch = 8;  // 100 samples: the 13th step has four
  Race race(options, {1000, 1000});
  for (int i = 0; i < 3; ++i) {
    for (MemberId id : {1, 2}) race.report(id);
    race.step += 5;
  }
  EXPECT_EQ(race.w.state.speeds.paces.at(1).steps, 14u);
  EXPECT_EQ(race.w.state.speeds.paces.at(1).slots, 56u);
  EXPECT_EQ(race.w.state.speeds.paces.at(1).busy_us, 56'000u);
}

TEST(Pace, AfterADeathAndAJoinTheSlotsStillFollowWhatIsKnown) {
  Race race(rebalanced(4, 16), {1000, 1000, 1000, 3000, 1000});
  race.run(25'000);
  EXPECT_EQ(race.slots(), (Sizes{5, 5, 5, 1}));
  race.kill(1);
  EXPECT_EQ(race.slots(), (Sizes{7, 7, 2}));
  race.w.join(5);  // of unknown speed: like the others
  race.run(1'000);
  EXPECT_EQ(race.w.state.ranks, (std::vector<MemberId>{2, 3, 4, 5}));
  EXPECT_EQ(race.slots(), (Sizes{5, 5, 1, 5}));
}

TEST(Pace, AnOutlierIsReportedOnceAndGivesItsPlaceToWhoWaits) {
  Race race(rebalanced(3, 12), {1000, 1000, 5000, 1000});
  race.run(29'000);
  EXPECT_EQ(race.noted("slow_worker"), 0);
  race.run(40'000);
  EXPECT_EQ(race.noted("slow_worker"), 1);
  EXPECT_EQ(race.w.state.ranks, (std::vector<MemberId>{1, 2, 3})) << "nobody else is there";
  race.w.join(4);
  race.run(1'000);
  EXPECT_EQ(race.w.state.ranks, (std::vector<MemberId>{1, 2, 4}));
  EXPECT_EQ(race.goodbyes.at(3).back().goodbye().exit_code(), 0u);
  EXPECT_EQ(race.w.state.members.at(3).state, MemberState::kGone);
  race.run(40'000);
  EXPECT_EQ(race.slots(), (Sizes{4, 4, 4}));
  EXPECT_EQ(race.noted("slow_worker"), 1);
}

TEST(Pace, WhoWaitsInASlowPlaceReplacesNobody) {
  Race race(rebalanced(3, 12), {1000, 1000, 5000, 1000});
  race.w.state.speeds.slow[{"n", 3}] = 3;
  race.w.join(4);
  race.run(70'000);
  EXPECT_EQ(race.noted("slow_worker"), 1);
  EXPECT_EQ(race.w.state.ranks, (std::vector<MemberId>{1, 2, 3}));
}

TEST(Pace, SomebodyStaysWhoCanHandTheStateOver) {
  Race race(rebalanced(2, 8), {1000, 1000, 1000, 1000});
  for (uint32_t local_rank : {0, 1}) race.w.state.speeds.slow[{"n", local_rank}] = 3;
  race.w.join(3);
  race.w.join(4);
  EXPECT_FALSE(race.w.state.planned);
  race.run(15'000);
  EXPECT_EQ(race.w.state.ranks, (std::vector<MemberId>{1, 2})) << "they were not slow any more";
}

// A coordinator that begins while three workers train, with 6, 1 and 1 of 8 slots.
Beginning living_with_weights() {
  Beginning b = second_term();
  b.next_member = 4;
  b.generation = 4;
  b.is_identity_stored = true;
  b.living.emplace();
  b.living->generation = 4;
  b.living->row = {4, {0, Phase::kTrain}, std::nullopt, false, "planned"};
  b.living->start.set_writer(1);
  const Sizes bounds{0, 6, 7, 8};
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const MemberId id = rank + 1;
    wire::MemberInfo* info = b.living->start.add_members();
    info->set_member(id);
    info->set_rank(rank);
    info->set_node("n");
    info->mutable_slots()->set_begin(bounds[rank]);
    info->mutable_slots()->set_end(bounds[rank + 1]);
    b.living->members.push_back({id, 1, "n", rank, 1000 + rank});
  }
  return b;
}

TEST(Pace, ACoordinatorThatTakesOverKeepsTheWeightsAndLosesTheWindowOnly) {
  World w(rebalanced(3, 8), living_with_weights());
  for (ConnectionId c : {1, 2, 3}) {
    wire::Register m = World::registration(static_cast<uint32_t>(c) - 1);
    m.set_member(c);
    m.set_generation(4);
    m.set_has_state(true);
    EXPECT_EQ(w.join(c, m), Reason::kReconnected);
  }
  EXPECT_EQ(w.kill(3), Reason::kRegrouped);
  for (ConnectionId c : {1, 2}) w.promise_at(c, 0);
  EXPECT_EQ(w.state.members.at(1).slots, (SlotRun{0, 7}));
  EXPECT_EQ(w.state.members.at(2).slots, (SlotRun{7, 8}));
}

// invariants.h asserts after every event that the runs cover all slots once.
TEST(Pace, WhateverTheSpeedsAndTheDeathsTrainingGoesOn) {
  constexpr uint32_t kSeeds = kIsSanitized ? 4 : 30;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937 random(seed);
    const uint32_t workers = 2 + random() % 4;
    const uint32_t slots = workers + random() % 12;
    std::vector<uint32_t> costs;
    for (int i = 0; i < 20; ++i) costs.push_back(100 + random() % 8000);
    Race race(rebalanced(workers, slots), costs);
    MemberId next = workers + 1;
    for (int round = 0; round < 4; ++round) {
      race.run(10'000 + static_cast<int64_t>(random() % 30'000));
      if (race.w.state.ranks.size() > 1 && random() % 2 == 0) {
        race.kill(race.w.state.ranks[random() % race.w.state.ranks.size()]);
      }
      if (random() % 2 == 0) race.w.join(next++);
      for (uint32_t& cost : race.cost_us) {
        if (random() % 4 == 0) cost = 100 + random() % 8000;
      }
    }
    EXPECT_TRUE(race.w.ends.empty()) << "seed " << seed;
    EXPECT_GE(race.w.state.completed + 5, race.step) << "seed " << seed;
  }
}

}  // namespace
}  // namespace lockstep::coordinator
