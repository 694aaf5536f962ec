// Slots on several machines: each keeps the slots of one subtree, after a death, too.
#include "coordinator/state/slots.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

constexpr uint32_t kSlots = 8;

Options on_two_machines() {
  Options options = small_options(8, 1'000);
  options.job.mutable_train()->set_global_batch(kSlots);
  options.job.mutable_train()->set_slots(kSlots);
  options.job.mutable_cluster()->set_rebalance(true);
  return make_options(options.job, options.facts, options.run_dir);
}

// Four workers on each machine.
void train(World& w) {
  for (uint32_t c = 1; c <= 8; ++c) {
    wire::Register m = World::registration(c - 1);
    m.set_node(c <= 4 ? "n1" : "n2");
    m.mutable_data()->set_host_id(c <= 4 ? "first" : "second");
    w.join(c, m);
  }
  for (uint32_t c = 1; c <= 8; ++c) w.promise(c);
  ASSERT_EQ(w.state.run, RunState::kStarted);
}

// Returns the complete subtrees of each machine's slots, by machine.
std::vector<uint32_t> trees(const wire::Start& start) {
  std::map<std::string, SlotRun> runs;
  for (const wire::MemberInfo& info : start.members()) {
    const SlotRun slots{info.slots().begin(), info.slots().end()};
    SlotRun& run = runs.try_emplace(info.data().host_id(), slots).first->second;
    run.end = slots.end;
  }
  std::vector<uint32_t> found;
  for (const auto& [host, run] : runs) found.push_back(partials_of_run(run, kSlots));
  return found;
}

TEST(NodeSlots, ADeathOnEitherMachineLeavesOneSubtreeToEach) {
  for (const ConnectionId victim : {1, 4, 5, 8}) {
    World w(on_two_machines());
    train(w);
    EXPECT_EQ(trees(w.started()), (std::vector<uint32_t>{1, 1}));
    wire::Envelope failed;
    failed.mutable_leave()->set_reason(wire::Leave::FAILED);
    failed.mutable_leave()->set_code(static_cast<uint32_t>(Code::kInternal));
    w.say(victim, failed);
    for (ConnectionId c = 1; c <= 8; ++c) {
      if (c != victim) w.promise_at(c, 0);
    }
    ASSERT_EQ(w.started().members_size(), 7);
    EXPECT_EQ(trees(w.started()), (std::vector<uint32_t>{1, 1})) << "of connection " << victim;
  }
}

// Else a coordinator that takes over would think that some are slow.
TEST(NodeSlots, ATakeOverKnowsTheRunsOfAlikeWorkersOnSeveralMachines) {
  Beginning b;
  b.run_id = "test";
  b.term = 2;
  b.next_member = 8;
  b.generation = 4;
  b.is_identity_stored = true;
  LivingGeneration& living = b.living.emplace();
  living.generation = 4;
  living.row = {4, {10, Phase::kTrain}, std::nullopt, false, "death"};
  living.start.set_writer(1);
  living.start.set_total_steps(1'000);
  const std::vector<uint32_t> nodes = {0, 0, 0, 1, 1, 1, 1};
  const auto runs = assign_slots(nodes, kSlots);
  ASSERT_NE(runs, assign_slots(std::vector<uint32_t>(7, 0), kSlots)) << "shows nothing";
  for (uint32_t rank = 0; rank < 7; ++rank) {
    wire::MemberInfo* info = living.start.add_members();
    info->set_member(rank + 1);
    info->set_rank(rank);
    info->mutable_slots()->set_begin(runs[rank].begin);
    info->mutable_slots()->set_end(runs[rank].end);
    info->set_node(nodes[rank] == 0 ? "n1" : "n2");
    info->mutable_data()->set_host_id(nodes[rank] == 0 ? "first" : "second");
    living.members.push_back({rank + 1, 1, info->node(), rank, 1000 + rank});
  }
  const World w(on_two_machines(), b);
  EXPECT_TRUE(w.state.speeds.cost_us.empty());
}

}  // namespace
}  // namespace lockstep::coordinator
