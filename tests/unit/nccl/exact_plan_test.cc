// Plans of all ranks, carried out in plain memory, against sum_slice() over all partials.
#include "comm/collectives/nccl/exact_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <deque>
#include <map>

#include "comm/base/prng.h"
#include "comm/collectives/nccl/sum_program.h"
#include "comm/collectives/sum_slice.h"
#include "tests/support/fails_with.h"
#include "tests/support/same_bits.h"

namespace lockstep::nccl {
namespace {

constexpr BufferLayout kLayout{.gradients = 1024, .statistics = 1088, .elements = 1136};

struct Rank {
  std::vector<std::vector<float>> partials;
  std::vector<float> stage;
  std::vector<float> result = std::vector<float>(kLayout.elements, 7.0f);

  float* at(const BufferPlace& place) {
    std::vector<float>& buffer = place.buffer == PlanBuffer::kPartial ? partials[place.region]
                                 : place.buffer == PlanBuffer::kStage ? stage
                                                                      : result;
    EXPECT_LE(place.begin, buffer.size());
    return buffer.data() + place.begin;
  }
};

std::vector<Rank> make_ranks(const StepMerge& merge) {
  std::vector<Rank> ranks(merge.ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r) {
    for (uint32_t region = 0; region < std::max(merge.ranks[r].regions, 1u); ++region) {
      auto& partial = ranks[r].partials.emplace_back();
      for (uint64_t i = 0; i < kLayout.elements; ++i)
        partial.push_back(static_cast<float>(stream_value(r * 64 + region, i) % 2001) / 1000 - 1);
    }
  }
  return ranks;
}

std::vector<float> expected_sum(const StepMerge& merge, std::vector<Rank>& ranks) {
  std::vector<float> out(kLayout.elements);
  const auto leaf_at = [&](const Leaf& leaf) {
    return ranks[leaf.rank].partials[leaf.region].data();
  };
  sum_slice(merge, kLayout.statistics, {0, kLayout.elements}, leaf_at, out.data());
  return out;
}

// All ranks' groups at once, as NCCL would; what is sent must be awaited and the other way round.
void exchange(const std::vector<ExactPlan>& plans, size_t phase, std::vector<Rank>& ranks) {
  std::map<std::pair<uint32_t, uint32_t>, std::deque<std::vector<float>>> wire;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    if (phase >= plans[r].phases.size()) continue;
    for (const Transfer& send : plans[r].phases[phase].sends) {
      ASSERT_NE(send.peer, r);
      const float* from = ranks[r].at(send.place);
      wire[{r, send.peer}].emplace_back(from, from + send.elements);
    }
  }
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    if (phase >= plans[r].phases.size()) continue;
    for (const Transfer& receive : plans[r].phases[phase].receives) {
      auto& queue = wire[{receive.peer, r}];
      ASSERT_FALSE(queue.empty()) << "rank " << r << " waits for " << receive.peer;
      ASSERT_EQ(queue.front().size(), receive.elements);
      std::memcpy(ranks[r].at(receive.place), queue.front().data(),
                  receive.elements * sizeof(float));
      queue.pop_front();
    }
  }
  for (const auto& [pair, queue] : wire)
    EXPECT_TRUE(queue.empty()) << pair.first << " to " << pair.second;
}

void add(const ExactPlan& plan, size_t phase, Rank& rank) {
  if (phase >= plan.phases.size()) return;
  for (const PlannedSum& sum : plan.phases[phase].sums) {
    std::vector<const float*> leaves;
    for (const BufferPlace& leaf : sum.leaves) leaves.push_back(rank.at(leaf));
    DeviceSum device;
    ASSERT_TRUE(make_device_sum(sum.ops, leaves, rank.at(sum.out), sum.elements, &device).is_ok());
    for (uint64_t i = 0; i < sum.elements; ++i) device.out[i] = sum_element(device, i);
  }
}

// Carries out the plans of every bucket; whether they had levels.
bool run(const StepMerge& merge, const std::vector<uint32_t>& nodes,
         const std::vector<uint64_t>& bounds, std::vector<Rank>& ranks) {
  bool has_levels = false;
  for (size_t b = 0; b + 1 < bounds.size(); ++b) {
    std::vector<ExactPlan> plans;
    size_t phases = 0;
    for (uint32_t r = 0; r < ranks.size(); ++r) {
      plans.push_back(
          make_exact_plan(merge, nodes, r, {bounds[b], bounds[b + 1]}, kLayout.statistics));
      ranks[r].stage.assign(plans[r].stage_elements, -3.0f);
      phases = std::max(phases, plans[r].phases.size());
      EXPECT_EQ(plans[r].has_levels, plans[0].has_levels);
    }
    for (size_t phase = 0; phase < phases; ++phase) {
      exchange(plans, phase, ranks);
      for (uint32_t r = 0; r < ranks.size(); ++r) add(plans[r], phase, ranks[r]);
    }
    has_levels = plans[0].has_levels;
  }
  return has_levels;
}

std::vector<SlotRun> even_runs(uint32_t ranks, uint32_t slots) {
  std::vector<SlotRun> runs;
  for (uint32_t r = 0; r < ranks; ++r) runs.push_back({r * slots / ranks, (r + 1) * slots / ranks});
  return runs;
}

void expect_exact(uint32_t nodes, uint32_t local, uint32_t slots, bool expect_levels) {
  std::vector<uint32_t> node_of_rank;
  for (uint32_t r = 0; r < nodes * local; ++r) node_of_rank.push_back(r / local);
  const StepMerge merge =
      make_step_merge(even_runs(nodes * local, slots), slots, std::vector<bool>(slots, true));
  std::vector<Rank> ranks = make_ranks(merge);
  const std::vector<float> expected = expected_sum(merge, ranks);
  EXPECT_EQ(run(merge, node_of_rank, {0, 512, 1040, kLayout.elements}, ranks), expect_levels);
  for (const Rank& rank : ranks) EXPECT_EQ(rank.result, expected);
}

TEST(ExactPlan, SumsAlongTheTreeWithinOneNode) {
  expect_exact(1, 1, 1, false);
  expect_exact(1, 2, 2, false);
  expect_exact(1, 3, 7, false);
  expect_exact(1, 8, 8, false);
}

TEST(ExactPlan, SumsInTwoLevelsWhereNodesAreSubtrees) {
  expect_exact(2, 2, 4, true);
  expect_exact(2, 4, 16, true);
  expect_exact(4, 2, 8, true);
  expect_exact(3, 2, 6, true);
}

TEST(ExactPlan, IsFlatWhereANodeIsNoSubtree) {
  expect_exact(2, 3, 6, false);  // slots 0..2 are no subtree of six
  expect_exact(2, 1, 2, false);  // one rank a node: nothing to add within
}

RC_GTEST_PROP(ExactPlan, HasTheBitsOfTheTreeForEveryWorldAndEveryEmptySlot, ()) {
  const auto nodes = *rc::gen::inRange<uint32_t>(1, 5);
  const auto local = *rc::gen::inRange<uint32_t>(1, 5);
  const auto slots = *rc::gen::inRange<uint32_t>(1, 24);
  const auto seed = *rc::gen::arbitrary<uint64_t>();
  std::vector<uint32_t> node_of_rank;
  for (uint32_t r = 0; r < nodes * local; ++r) node_of_rank.push_back(r / local);
  std::vector<bool> non_empty;
  for (uint32_t s = 0; s < slots; ++s) non_empty.push_back(stream_value(seed, s) % 4 != 0);
  const StepMerge merge = make_step_merge(even_runs(nodes * local, slots), slots, non_empty);
  std::vector<Rank> ranks = make_ranks(merge);
  const std::vector<float> expected = expected_sum(merge, ranks);
  run(merge, node_of_rank, {0, 16, 1024, kLayout.elements}, ranks);
  for (const Rank& rank : ranks) RC_ASSERT(same_bits(rank.result, expected));
}

// What two levels are for: between nodes goes one value a node, not every partial.
TEST(ExactPlan, SendsLessBetweenNodesInTwoLevels) {
  const std::vector<uint32_t> two_nodes = {0, 0, 0, 0, 1, 1, 1, 1};
  const StepMerge merge = make_step_merge(even_runs(8, 8), 8, std::vector<bool>(8, true));
  const auto across = [&](const std::vector<uint32_t>& planned) {
    uint64_t elements = 0;
    for (uint32_t r = 0; r < 8; ++r) {
      const ExactPlan plan = make_exact_plan(merge, planned, r, {0, 1024}, kLayout.statistics);
      for (const ExchangePhase& phase : plan.phases) {
        for (const Transfer& send : phase.sends)
          elements += two_nodes[send.peer] != two_nodes[r] ? send.elements : 0;
      }
    }
    return elements;
  };
  EXPECT_EQ(across(two_nodes), 2 * 1024u);  // N a node: half to sum, half of the sum
  EXPECT_EQ(across(std::vector<uint32_t>(8, 0)), 8 * 1024u);
}

TEST(DeviceSum, OfMorePartialsThanAKernelTakesIsRefusedInWords) {
  const std::vector<const float*> leaves(limits::kDeviceLeaves + 1);
  DeviceSum sum;
  const Status status = make_device_sum({}, leaves, nullptr, 0, &sum);
  EXPECT_THAT(status, FailsWith(Code::kConfig, Names("train.slots")));
}

}  // namespace
}  // namespace lockstep::nccl
