// Tests which rank owns which slots: at equal costs, and by cost.
#include "coordinator/state/slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace lockstep::coordinator {
namespace {

using Sizes = std::vector<uint32_t>;

std::vector<uint32_t> on_one_node(size_t ranks) {
  return std::vector<uint32_t>(ranks, 0);
}

// `ranks` ranks of equal cost, or ranks of these costs, on one node.
std::vector<SlotRun> assign(uint32_t ranks, uint32_t slots) {
  return assign_slots(on_one_node(ranks), slots);
}
std::vector<SlotRun> assign(const std::vector<uint32_t>& costs, uint32_t slots) {
  return assign_slots(costs, on_one_node(costs.size()), slots);
}

Sizes sizes_of(const std::vector<SlotRun>& runs) {
  Sizes sizes;
  for (const SlotRun& run : runs) sizes.push_back(run.end - run.begin);
  return sizes;
}

uint32_t partials_of(const Sizes& sizes) {
  const uint32_t slots = std::accumulate(sizes.begin(), sizes.end(), 0u);
  uint32_t sum = 0;
  uint32_t begin = 0;
  for (const uint32_t size : sizes) {
    sum += partials_of_run({begin, begin + size}, slots);
    begin += size;
  }
  return sum;
}

// The longest time among ranks with more than one slot: no rank has to own a second one.
uint64_t time_of_the_rest(const Sizes& sizes, const std::vector<uint32_t>& costs) {
  uint64_t longest = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1) longest = std::max(longest, uint64_t{sizes[i]} * costs[i]);
  }
  return longest;
}

// All ways to give each of `ranks` at least one of `slots`.
void each_way(uint32_t ranks, uint32_t slots, Sizes& so_far,
              const std::function<void(const Sizes&)>& visit) {
  if (ranks == 1) {
    so_far.push_back(slots);
    visit(so_far);
    so_far.pop_back();
    return;
  }
  for (uint32_t size = 1; size + ranks - 1 <= slots; ++size) {
    so_far.push_back(size);
    each_way(ranks - 1, slots - size, so_far, visit);
    so_far.pop_back();
  }
}

void expect_the_best_of_all(const std::vector<uint32_t>& costs, uint32_t slots) {
  const auto ranks = static_cast<uint32_t>(costs.size());
  std::vector<Sizes> ways;
  Sizes so_far;
  each_way(ranks, slots, so_far, [&](const Sizes& sizes) { ways.push_back(sizes); });
  uint64_t best = ~uint64_t{0};
  for (const Sizes& sizes : ways) best = std::min(best, time_of_the_rest(sizes, costs));
  uint32_t fewest = ~0u;
  for (const Sizes& sizes : ways) {
    if (time_of_the_rest(sizes, costs) == best) fewest = std::min(fewest, partials_of(sizes));
  }
  const Sizes sizes = sizes_of(assign(costs, slots));
  EXPECT_EQ(time_of_the_rest(sizes, costs), best) << testing::PrintToString(costs) << " " << slots;
  EXPECT_EQ(partials_of(sizes), fewest) << testing::PrintToString(costs) << " " << slots;
}

TEST(Slots, EveryAssignmentCoversAllSlotsAndNobodyHasMoreThanItsFairShare) {
  for (uint32_t slots : {1u, 2u, 3u, 4u, 7u, 8u, 12u, 31u, 64u, 2000u}) {
    for (uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 8u, 13u, 70u}) {
      const auto runs = assign(ranks, slots);
      ASSERT_EQ(runs.size(), ranks);
      uint32_t next = 0;
      for (const SlotRun& run : runs) {
        ASSERT_EQ(run.begin, next);
        ASSERT_LE(run.end - run.begin, (slots + ranks - 1) / ranks);
        next = run.end;
      }
      ASSERT_EQ(next, slots);
    }
  }
}

TEST(Slots, PowerOfTwoRunsAreAlignedSoThatEachIsOnePartial) {
  for (const SlotRun& run : assign(4, 8)) EXPECT_EQ(partials_of_run(run, 8), 1u);
  uint32_t partials = 0;
  for (const SlotRun& run : assign(3, 7)) partials += partials_of_run(run, 7);
  EXPECT_EQ(partials, 3u);  // 2+2+3: the last three are a complete subtree of seven
}

TEST(Slots, SurplusRanksAreLastAndOwnNothing) {
  const auto runs = assign(6, 4);
  EXPECT_EQ(runs[3], (SlotRun{3, 4}));
  EXPECT_EQ(runs[4], (SlotRun{4, 4}));
  EXPECT_EQ(runs[5], (SlotRun{4, 4}));
}

TEST(Slots, EqualRanksHaveTheRunsThatTheyAlwaysHad) {
  EXPECT_EQ(sizes_of(assign(3, 8)), (Sizes{2, 3, 3}));
  EXPECT_EQ(sizes_of(assign(5, 12)), (Sizes{2, 2, 2, 3, 3}));
  EXPECT_EQ(sizes_of(assign(6, 16)), (Sizes{2, 2, 3, 3, 3, 3}));
  EXPECT_EQ(sizes_of(assign(7, 31)), (Sizes{4, 4, 4, 4, 5, 5, 5}));
  EXPECT_EQ(sizes_of(assign(3, 2000)), (Sizes{666, 667, 667}));
  const std::vector<uint32_t> alike(3, 7 * kEvenCost);
  EXPECT_EQ(assign(alike, 31), assign(3, 31)) << "only differences count";
}

TEST(Slots, ARankThatIsThreeTimesSlowerHoldsAThird) {
  EXPECT_EQ(sizes_of(assign({kEvenCost, 3 * kEvenCost}, 8)), (Sizes{6, 2}));
  EXPECT_EQ(sizes_of(assign({3 * kEvenCost, kEvenCost}, 4000)), (Sizes{1000, 3000}));
}

TEST(Slots, WhoIsTooSlowForAnyHoldsOneAndTheRestIsSharedEvenly) {
  EXPECT_EQ(sizes_of(assign({kEvenCost, kHighestCost, kEvenCost}, 9)), (Sizes{4, 1, 4}));
  EXPECT_EQ(sizes_of(assign({kHighestCost, kEvenCost, kEvenCost}, 4001)), (Sizes{1, 2000, 2000}));
}

TEST(Slots, OfAllWaysTheShortestTimeIsTakenAndOfThoseTheFewestPartials) {
  const std::vector<uint32_t> some{512, 1024, 1300, 2048, 5000};
  for (const uint32_t a : some) {
    for (const uint32_t b : some) {
      for (const uint32_t c : some) {
        for (uint32_t slots = 3; slots <= 13; ++slots) expect_the_best_of_all({a, b, c}, slots);
        expect_the_best_of_all({a, b, c, kEvenCost}, 9);
      }
    }
  }
}

TEST(Slots, WhoeverIsFastestOwnsThemWhenThereAreMoreRanksThanSlots) {
  const uint32_t slow = 3 * kEvenCost;
  EXPECT_EQ(sizes_of(assign({kEvenCost, slow, kEvenCost, kEvenCost}, 3)), (Sizes{1, 0, 1, 1}));
  EXPECT_EQ(sizes_of(assign({slow, kEvenCost, slow}, 2)), (Sizes{0, 2, 0}));
}

TEST(Slots, AnyCostsGiveRunsThatCoverAllSlotsOnceAndLeaveNobodyWithoutOne) {
  std::mt19937 random(1);
  const auto below = [&](uint32_t end) { return static_cast<uint32_t>(random() % end); };
  for (int round = 0; round < 400; ++round) {
    const uint32_t slots = 1 + below(round % 20 == 0 ? 65'536 : 200);
    const uint32_t ranks = 1 + below(round % 3 == 0 ? slots + 5 : 20);
    std::vector<uint32_t> costs(ranks);
    for (uint32_t& cost : costs) cost = 1 + below(1u << (1 + below(20)));
    const auto runs = assign(costs, slots);
    ASSERT_EQ(runs.size(), ranks);
    uint32_t next = 0;
    for (const SlotRun& run : runs) {
      ASSERT_EQ(run.begin, next);
      ASSERT_TRUE(run.end > run.begin || (run.end == run.begin && ranks > slots));
      next = run.end;
    }
    ASSERT_EQ(next, slots);
    ASSERT_LE(longest_time(runs, costs), longest_time(assign(ranks, slots), costs));
  }
}

// Returns by node the values that go between nodes in two levels: complete subtrees of the node's
// slots.
Sizes trees_of_nodes(const Sizes& sizes, const std::vector<uint32_t>& node_of_rank) {
  const uint32_t slots = std::accumulate(sizes.begin(), sizes.end(), 0u);
  Sizes trees;
  SlotRun run;
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    run.end += sizes[rank];
    if (rank + 1 < sizes.size() && node_of_rank[rank + 1] == node_of_rank[rank]) continue;
    trees.push_back(partials_of_run(run, slots));
    run.begin = run.end;
  }
  return trees;
}

std::vector<uint32_t> nodes_of(const std::vector<uint32_t>& ranks) {
  std::vector<uint32_t> node_of_rank;
  for (uint32_t n = 0; n < ranks.size(); ++n) node_of_rank.insert(node_of_rank.end(), ranks[n], n);
  return node_of_rank;
}

Sizes trees_after(const std::vector<uint32_t>& ranks, uint32_t slots) {
  const auto nodes = nodes_of(ranks);
  return trees_of_nodes(sizes_of(assign_slots(nodes, slots)), nodes);
}

// The table of comm/collectives/COST.md. The death of any rank of a node leaves the same runs.
TEST(Slots, ADeathOnAnyNodeLeavesFewValuesBetweenNodes) {
  EXPECT_EQ(trees_after({8, 8}, 16), (Sizes{1, 1}));
  EXPECT_EQ(trees_after({3, 4}, 8), (Sizes{1, 1}));
  EXPECT_EQ(trees_after({4, 3}, 8), (Sizes{1, 1}));
  EXPECT_EQ(trees_after({7, 8}, 16), (Sizes{1, 1}));
  EXPECT_EQ(trees_after({8, 7}, 16), (Sizes{1, 1}));
  EXPECT_EQ(trees_after({7, 8}, 64), (Sizes{1, 1}));
  EXPECT_EQ(trees_after({8, 7}, 64), (Sizes{1, 1}));
  EXPECT_EQ(trees_after({7, 8}, 128), (Sizes{3, 2}));
  EXPECT_EQ(trees_after({8, 7}, 128), (Sizes{2, 3}));
  EXPECT_EQ(trees_after({7, 8, 8, 8}, 32), (Sizes{1, 1, 1, 1}));
  EXPECT_EQ(trees_after({8, 8, 8, 7}, 32), (Sizes{1, 1, 1, 1}));
}

// Nodes decide only between assignments that are as good otherwise.
TEST(Slots, OfAssignmentsWithTheFewestPartialsTheOneWithTheFewestValuesBetweenNodesIsTaken) {
  const std::vector<uint32_t> some{512, 1024, 2048};
  for (const std::vector<uint32_t>& ranks :
       {std::vector<uint32_t>{1, 3}, {3, 1}, {2, 2}, {1, 1, 2}, {2, 1, 1}}) {
    const auto nodes = nodes_of(ranks);
    for (uint32_t slots = 4; slots <= 12; ++slots) {
      for (size_t odd = 0; odd < 4; ++odd) {
        for (const uint32_t cost : some) {
          std::vector<uint32_t> costs(4, kEvenCost);
          costs[odd] = cost;
          const Sizes alone = sizes_of(assign(costs, slots));
          const Sizes sizes = sizes_of(assign_slots(costs, nodes, slots));
          EXPECT_EQ(time_of_the_rest(sizes, costs), time_of_the_rest(alone, costs));
          EXPECT_EQ(partials_of(sizes), partials_of(alone));
          const auto sum = [](const Sizes& s) { return std::accumulate(s.begin(), s.end(), 0u); };
          uint32_t fewest = ~0u;
          Sizes so_far;
          each_way(4, slots, so_far, [&](const Sizes& way) {
            if (time_of_the_rest(way, costs) == time_of_the_rest(alone, costs) &&
                partials_of(way) == partials_of(alone))
              fewest = std::min(fewest, sum(trees_of_nodes(way, nodes)));
          });
          EXPECT_EQ(sum(trees_of_nodes(sizes, nodes)), fewest)
              << testing::PrintToString(costs) << " " << testing::PrintToString(ranks) << " "
              << slots;
        }
      }
    }
  }
}

// Hundreds of uneven runs on many nodes: nodes do not count, and it is over soon.
TEST(Slots, ASearchThatWouldTakeTooLongLooksAtNoNodes) {
  EXPECT_EQ(assign_slots(nodes_of({500, 500}), 1024), assign(1000, 1024));
  EXPECT_NE(assign_slots(nodes_of({7, 8}), 64), assign(15, 64)) << "this one is soon over";
}

TEST(Slots, WhoOwnsNothingDoesNotCountForItsNode) {
  const auto nodes = nodes_of({2, 3});
  const uint32_t slow = 3 * kEvenCost;
  EXPECT_EQ(sizes_of(assign_slots({slow, kEvenCost, slow, kEvenCost, kEvenCost}, nodes, 3)),
            (Sizes{0, 1, 0, 1, 1}));
}

}  // namespace
}  // namespace lockstep::coordinator
