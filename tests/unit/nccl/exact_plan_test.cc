// Plans of all ranks, carried out in plain memory, against sum_slice() over all partials.
#include "comm/collectives/nccl/exact_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "comm/base/prng.h"
#include "comm/collectives/nccl/sum_program.h"
#include "comm/collectives/node_levels.h"
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

template <uint32_t Leaves>
float balanced_element(const DeviceSum& sum, uint64_t i) {
  float values[Leaves];
  for (uint32_t k = 0; k < Leaves; ++k) values[k] = sum.leaves[k][i];
  return sum_balanced(values);
}

// Computes by the function that the kernel for such a sum takes (queue_kernels.cu).
float element_of_kernel(const DeviceSum& sum, uint64_t i) {
  switch (sum.balanced) {
    case 2:
      return balanced_element<2>(sum, i);
    case 4:
      return balanced_element<4>(sum, i);
    case 8:
      return balanced_element<8>(sum, i);
    default:
      return sum_element(sum, i);
  }
}

void add(const ExactPlan& plan, size_t phase, Rank& rank) {
  if (phase >= plan.phases.size()) return;
  for (const PlannedSum& sum : plan.phases[phase].sums) {
    std::vector<const float*> leaves;
    for (const BufferPlace& leaf : sum.leaves) leaves.push_back(rank.at(leaf));
    DeviceSum device;
    ASSERT_TRUE(make_device_sum(sum.ops, leaves, rank.at(sum.out), sum.elements, &device).is_ok());
    for (uint64_t i = 0; i < sum.elements; ++i) device.out[i] = element_of_kernel(device, i);
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

// Ranks on each node, as node_of_rank.
std::vector<uint32_t> nodes_of(const std::vector<uint32_t>& ranks) {
  std::vector<uint32_t> node_of_rank;
  for (uint32_t n = 0; n < ranks.size(); ++n) node_of_rank.insert(node_of_rank.end(), ranks[n], n);
  return node_of_rank;
}

void expect_exact(const std::vector<uint32_t>& nodes, uint32_t slots, bool expect_levels) {
  const std::vector<uint32_t> node_of_rank = nodes_of(nodes);
  const auto world = static_cast<uint32_t>(node_of_rank.size());
  const StepMerge merge =
      make_step_merge(even_runs(world, slots), slots, std::vector<bool>(slots, true));
  std::vector<Rank> ranks = make_ranks(merge);
  const std::vector<float> expected = expected_sum(merge, ranks);
  EXPECT_EQ(run(merge, node_of_rank, {0, 512, 1040, kLayout.elements}, ranks), expect_levels);
  for (const Rank& rank : ranks) EXPECT_EQ(rank.result, expected);
}

TEST(ExactPlan, SumsAlongTheTreeWithinOneNode) {
  expect_exact({1}, 1, false);
  expect_exact({2}, 2, false);
  expect_exact({3}, 7, false);
  expect_exact({8}, 8, false);
}

TEST(ExactPlan, SumsInTwoLevelsWhereNodesAreSubtrees) {
  expect_exact({2, 2}, 4, true);
  expect_exact({4, 4}, 16, true);
  expect_exact({2, 2, 2, 2}, 8, true);
  expect_exact({2, 2, 2}, 6, true);
}

TEST(ExactPlan, SumsInTwoLevelsWhereANodeOwnsSeveralSubtrees) {
  expect_exact({3, 3}, 6, true);  // slots 0..2 are no subtree of six
  expect_exact({8, 7}, 16, true);
  expect_exact({7, 8}, 16, true);
  expect_exact({1, 4, 2}, 9, true);
  expect_exact({3, 1}, 2, true);  // two ranks without a slot
}

TEST(ExactPlan, IsFlatWhereNoNodeHasAnythingToAdd) {
  expect_exact({1, 1}, 2, false);
}

// Runs of any length, also empty ones.
std::vector<SlotRun> random_runs(size_t ranks, uint32_t slots, uint64_t seed) {
  std::vector<uint32_t> ends;
  for (size_t r = 0; r + 1 < ranks; ++r)
    ends.push_back(static_cast<uint32_t>(stream_value(seed, 1000 + r) % (slots + 1)));
  ends.push_back(slots);
  std::sort(ends.begin(), ends.end());
  std::vector<SlotRun> runs;
  for (const uint32_t end : ends) runs.push_back({runs.empty() ? 0 : runs.back().end, end});
  return runs;
}

RC_GTEST_PROP(ExactPlan, HasTheBitsOfTheTreeForUnevenNodesAndEveryEmptySlot, ()) {
  const auto nodes = *rc::gen::inRange<size_t>(1, 4);
  const auto local = *rc::gen::container<std::vector<uint32_t>>(nodes, rc::gen::inRange(1u, 9u));
  const auto slots = *rc::gen::inRange<uint32_t>(1, 40);
  const auto seed = *rc::gen::arbitrary<uint64_t>();
  const std::vector<uint32_t> node_of_rank = nodes_of(local);
  std::vector<bool> non_empty;
  for (uint32_t s = 0; s < slots; ++s) non_empty.push_back(stream_value(seed, s) % 4 != 0);
  const auto runs = stream_value(seed, 999) % 2 == 0
                        ? random_runs(node_of_rank.size(), slots, seed)
                        : even_runs(static_cast<uint32_t>(node_of_rank.size()), slots);
  const StepMerge merge = make_step_merge(runs, slots, non_empty);
  std::vector<Rank> ranks = make_ranks(merge);
  const std::vector<float> expected = expected_sum(merge, ranks);
  run(merge, node_of_rank, {0, 16, 1024, kLayout.elements}, ranks);
  for (const Rank& rank : ranks) RC_ASSERT(same_bits(rank.result, expected));
}

constexpr uint64_t kBucket = 1 << 16;  // elements

// Elements that leave each node, planned as if `planned` were the nodes.
std::vector<uint64_t> sent_across(const std::vector<SlotRun>& runs, uint32_t slots,
                                  const std::vector<uint32_t>& node_of_rank,
                                  const std::vector<uint32_t>& planned) {
  const StepMerge merge = make_step_merge(runs, slots, std::vector<bool>(slots, true));
  std::vector<uint64_t> elements(node_of_rank.back() + 1);
  for (uint32_t r = 0; r < runs.size(); ++r) {
    const ExactPlan plan = make_exact_plan(merge, planned, r, {0, kBucket}, kBucket);
    for (const ExchangePhase& phase : plan.phases) {
      for (const Transfer& send : phase.sends)
        elements[node_of_rank[r]] += node_of_rank[send.peer] != node_of_rank[r] ? send.elements : 0;
    }
  }
  return elements;
}

// With two levels, one value a node goes between nodes, not every partial.
TEST(ExactPlan, SendsLessBetweenNodesInTwoLevels) {
  const std::vector<uint32_t> two_nodes = nodes_of({4, 4});
  const auto levels = sent_across(even_runs(8, 8), 8, two_nodes, two_nodes);
  EXPECT_EQ(levels, (std::vector<uint64_t>{kBucket, kBucket}));  // half to sum, half of the sum
  const auto flat = sent_across(even_runs(8, 8), 8, two_nodes, std::vector<uint32_t>(8, 0));
  EXPECT_EQ(flat, (std::vector<uint64_t>{4 * kBucket, 4 * kBucket}));
}

// One of 2 x 8 ranks is gone, and rank 0 has taken its slot: each node still owns 8 slots, and one
// of node 0's ranks has two. Each node's slots are one subtree still.
TEST(ExactPlan, SendsOneValueANodeAfterADeathWhoseSlotStaysOnItsNode) {
  std::vector<SlotRun> runs = {{0, 2}};
  for (uint32_t slot = 2; slot < 16; ++slot) runs.push_back({slot, slot + 1});
  const std::vector<uint32_t> nodes = nodes_of({7, 8});
  EXPECT_EQ(sent_across(runs, 16, nodes, nodes), (std::vector<uint64_t>{kBucket, kBucket}));
}

// A slot that goes to the other node makes its node own several subtrees: 7 = 4 + 2 + 1 and
// 9 = 1 + 8. Flat, the same nodes send more than twice as much as with one value each.
TEST(ExactPlan, SendsAFewValuesANodeAfterADeathWhoseSlotGoesToTheOther) {
  std::vector<SlotRun> runs;
  for (uint32_t slot = 0; slot < 14; ++slot) runs.push_back({slot, slot + 1});
  runs.push_back({14, 16});
  const std::vector<uint32_t> nodes = nodes_of({7, 8});
  const auto levels = sent_across(runs, 16, nodes, nodes);
  EXPECT_NEAR(static_cast<double>(levels[0]), (3 + 1) * kBucket / 2.0, kBucket / 50.0);
  EXPECT_NEAR(static_cast<double>(levels[1]), (2 + 1) * kBucket / 2.0, kBucket / 50.0);
  const auto flat = sent_across(runs, 16, nodes, std::vector<uint32_t>(15, 0));
  EXPECT_GT(flat[0], 3 * levels[0]);
  EXPECT_GT(flat[1], 5 * levels[1] / 2);
}

TEST(SplitByNode, GivesEachNodeItsLargestSubtrees) {
  std::vector<SlotRun> runs;
  for (uint32_t slot = 0; slot < 8; ++slot) runs.push_back({slot, slot + 1});
  const StepMerge merge = make_step_merge(runs, 8, std::vector<bool>(8, true));
  const NodePrograms split = split_by_node(merge.gradients, nodes_of({3, 5}));
  std::vector<std::pair<uint32_t, size_t>> trees;  // node, partials
  for (const NodeTree& tree : split.trees) trees.push_back({tree.node, (tree.ops.size() + 1) / 2});
  EXPECT_THAT(trees, ::testing::ElementsAre(std::pair(0u, 1u), std::pair(1u, 1u), std::pair(0u, 2u),
                                            std::pair(1u, 4u)));
  EXPECT_EQ(split.outer, (std::vector<int32_t>{2, 0, 1, -1, -1, 3, -1}));
}

TEST(NodeLevels, AreDescribedForTheLog) {
  EXPECT_THAT(describe_levels(nodes_of({8, 7})), ::testing::HasSubstr("two levels over 2 nodes"));
  EXPECT_THAT(describe_levels(nodes_of({1, 1})), ::testing::HasSubstr("flat over 2 nodes"));
  EXPECT_THAT(describe_levels(nodes_of({8})), ::testing::HasSubstr("flat over 1 node of 8 GPUs"));
}

TEST(DeviceSum, OfMorePartialsThanAKernelTakesIsRefusedInWords) {
  const std::vector<const float*> leaves(limits::kDeviceLeaves + 1);
  DeviceSum sum;
  const Status status = make_device_sum({}, leaves, nullptr, 0, &sum);
  EXPECT_THAT(status, FailsWith(Code::kConfig, Names("train.slots")));
}

// The programs of 2, 4 and 8 full partials, and what the kernel for them adds.
template <uint32_t Leaves>
void expect_balanced_sum() {
  std::vector<SlotRun> runs;
  for (uint32_t r = 0; r < Leaves; ++r) runs.push_back({r, r + 1});
  const SumProgram program =
      make_step_merge(runs, Leaves, std::vector<bool>(Leaves, true)).gradients;
  ASSERT_EQ(balanced_leaves(program.ops), Leaves);
  std::vector<std::vector<float>> values;
  std::vector<const float*> leaves;
  for (uint32_t k = 0; k < Leaves; ++k) {
    std::vector<float>& of = values.emplace_back();
    for (uint64_t i = 0; i < 1000; ++i)
      of.push_back(static_cast<float>(stream_value(k, i) % 2'000'003) * 1e-4f - 100);
  }
  for (const std::vector<float>& of : values) leaves.push_back(of.data());
  DeviceSum sum;
  ASSERT_TRUE(make_device_sum(program.ops, leaves, nullptr, 1000, &sum).is_ok());
  EXPECT_EQ(sum.balanced, Leaves);
  for (uint64_t i = 0; i < 1000; ++i) {
    float of[Leaves];
    for (uint32_t k = 0; k < Leaves; ++k) of[k] = leaves[k][i];
    EXPECT_EQ(sum_balanced(of), sum_element(sum, i));
  }
}

TEST(DeviceSum, OfABalancedTreeHasTheBitsOfItsProgram) {
  expect_balanced_sum<2>();
  expect_balanced_sum<4>();
  expect_balanced_sum<8>();
}

TEST(DeviceSum, OfAnotherTreeIsNotBalanced) {
  constexpr int32_t kAdd = SumProgram::kAdd;
  const std::vector<std::vector<int32_t>> others = {
      {},
      {0},
      {1, 0, kAdd},
      {0, 1, kAdd, 2, kAdd},
      {0, 1, kAdd, 2, kAdd, 3, kAdd},
      {0, 1, 2, 3, kAdd, kAdd, kAdd},
      {0, 1, kAdd, 2, 3, kAdd},
      {0, 1, kAdd, 3, 2, kAdd, kAdd},
      {0, 1, kAdd, 2, 3, kAdd, kAdd, 4, kAdd},
  };
  for (const auto& ops : others) EXPECT_EQ(balanced_leaves(ops), 0u) << ops.size();
  EXPECT_EQ(balanced_leaves(std::vector<int32_t>{0, 1, kAdd, 2, 3, kAdd, kAdd}), 4u);
}

}  // namespace
}  // namespace lockstep::nccl
