#include "comm/collectives/reduction_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "comm/collectives/sum_slice.h"
#include "tests/support/same_bits.h"
#include "tests/unit/collectives/world.h"

namespace lockstep {
namespace {

// The tree of reduction_tree.h, written a second time and as naively as possible.
std::optional<float> naive_sum(uint32_t begin, uint32_t end, const std::vector<bool>& non_empty,
                               const std::vector<float>& values) {
  if (end - begin == 1) return non_empty[begin] ? std::optional(values[begin]) : std::nullopt;
  uint32_t power = 1;
  while (power * 2 < end - begin) power *= 2;
  const auto left = naive_sum(begin, begin + power, non_empty, values);
  const auto right = naive_sum(begin + power, end, non_empty, values);
  if (left && right) return *left + *right;
  return left ? left : right;
}

struct Case {
  uint32_t slots = 1;
  std::vector<SlotRun> runs;
  std::vector<bool> non_empty;
  std::vector<float> values;
};

Case arbitrary_case() {
  Case c;
  c.slots = *rc::gen::inRange<uint32_t>(1, 40);
  const auto ranks = *rc::gen::inRange<uint32_t>(1, c.slots + 1);
  const auto seed = *rc::gen::arbitrary<uint64_t>();
  c.runs = testing::random_runs(ranks, c.slots, seed);
  const bool all = *rc::gen::arbitrary<bool>();
  for (uint32_t s = 0; s < c.slots; ++s) {
    c.non_empty.push_back(all || *rc::gen::arbitrary<bool>());
    c.values.push_back(testing::slot_value(seed, s, 0));
  }
  return c;
}

// Runs the schedules of all ranks over one float a slot, then the program.
float scheduled_sum(const StepMerge& merge, const SumProgram& program,
                    const std::vector<float>& values, float empty_value) {
  std::vector<std::vector<float>> memory;
  for (const MergeSchedule& schedule : merge.ranks) {
    std::vector<float> regions(schedule.regions, std::numeric_limits<float>::quiet_NaN());
    for (const SlotWork& work : schedule.work) {
      if (!work.empty) regions[work.region] = values[work.slot];
      for (const RegionMerge& m : work.merges) add_into(&regions[m.dst], &regions[m.src], 1);
    }
    for (const FinalPartial& p : schedule.partials) {
      if (p.empty) regions[p.region] = empty_value;
    }
    memory.push_back(std::move(regions));
  }
  std::vector<const float*> leaves;
  for (const Leaf& leaf : program.leaves) leaves.push_back(&memory[leaf.rank][leaf.region]);
  float out = -1;
  evaluate_sum(program, leaves, &out, 1);
  return out;
}

RC_GTEST_PROP(ReductionTree, AnyRanksGiveTheBitsOfTheNaiveTree, ()) {
  const Case c = arbitrary_case();
  const StepMerge merge = make_step_merge(c.runs, c.slots, c.non_empty);
  const float sum = scheduled_sum(merge, merge.gradients, c.values, 1e30F);
  const float expected = naive_sum(0, c.slots, c.non_empty, c.values).value_or(0.0F);
  RC_ASSERT(std::bit_cast<uint32_t>(sum) == std::bit_cast<uint32_t>(expected));
}

RC_GTEST_PROP(ReductionTree, ControlCountsEveryPartialOnce, ()) {
  const Case c = arbitrary_case();
  const StepMerge merge = make_step_merge(c.runs, c.slots, c.non_empty);
  size_t partials = 0;
  uint32_t non_empty_partials = 0;
  for (const MergeSchedule& schedule : merge.ranks) {
    partials += schedule.partials.size();
    for (const FinalPartial& p : schedule.partials) non_empty_partials += p.empty ? 0 : 1;
  }
  RC_ASSERT(merge.control.leaves.size() == partials);
  RC_ASSERT(merge.gradients.leaves.size() == non_empty_partials);
  const std::vector<float> ones(c.slots, 1.0F);
  float whole_slots = 0;
  for (const bool full : c.non_empty) whole_slots += full ? 1 : 0;
  const float votes = scheduled_sum(merge, merge.control, ones, 100.0F);
  RC_ASSERT(votes == whole_slots + 100.0F * static_cast<float>(partials - non_empty_partials));
}

RC_GTEST_PROP(ReductionTree, NoRunNeedsMoreRegionsThanReserved, ()) {
  const auto slots =
      *rc::gen::oneOf(rc::gen::inRange<uint32_t>(1, 70), rc::gen::inRange<uint32_t>(513, 5000));
  const auto begin = *rc::gen::inRange<uint32_t>(0, slots);
  const auto end = *rc::gen::inRange<uint32_t>(begin + 1, slots + 1);
  std::vector<bool> non_empty(slots, true);
  for (uint32_t s = 0; s < slots; s += 1 + *rc::gen::inRange<uint32_t>(0, slots))
    non_empty[s] = false;
  const MergeSchedule schedule = make_merge_schedule({begin, end}, slots, non_empty);
  RC_ASSERT(schedule.regions <= regions_needed(end - begin, slots));
}

TEST(ReductionTree, ReservationIsTightForFourSlots) {
  EXPECT_EQ(regions_needed(1, 4), 1U);
  EXPECT_EQ(regions_needed(2, 4), 2U);
  EXPECT_EQ(regions_needed(4, 4), 3U);
}

TEST(ReductionTree, AlignedRunsLeaveOnePartialPerRank) {
  const std::vector<SlotRun> runs = {{0, 4}, {4, 6}, {6, 8}};
  const StepMerge merge = make_step_merge(runs, 8, std::vector<bool>(8, true));
  for (const MergeSchedule& schedule : merge.ranks) EXPECT_EQ(schedule.partials.size(), 1U);
  EXPECT_EQ(merge.gradients.leaves.size(), 3U);
}

TEST(ReductionTree, ARankWithoutSlotsHasNoPartial) {
  const std::vector<SlotRun> runs = {{0, 1}, {1, 2}, {2, 2}};
  const StepMerge merge = make_step_merge(runs, 2, {true, true});
  EXPECT_TRUE(merge.ranks[2].partials.empty());
  EXPECT_EQ(merge.gradients.leaves.size(), 2U);
}

TEST(ReductionTree, NegativeZeroSurvivesEmptySlots) {
  const std::vector<SlotRun> runs = {{0, 2}, {2, 4}};
  const StepMerge merge = make_step_merge(runs, 4, {false, true, false, false});
  const float sum = scheduled_sum(merge, merge.gradients, {0, -0.0F, 0, 0}, 0.0F);
  EXPECT_EQ(std::bit_cast<uint32_t>(sum), 0x80000000U);
}

TEST(ReductionTree, NonFiniteValuesStayNonFinite) {
  const std::vector<SlotRun> runs = {{0, 3}, {3, 4}};
  const StepMerge merge = make_step_merge(runs, 4, std::vector<bool>(4, true));
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(scheduled_sum(merge, merge.gradients, {1, inf, 2, 3}, 0), inf);
  EXPECT_TRUE(std::isnan(scheduled_sum(merge, merge.gradients, {1, inf, 2, -inf}, 0)));
  EXPECT_TRUE(std::isnan(scheduled_sum(merge, merge.gradients, {nan, 1, 2, 3}, 0)));
}

TEST(ReductionTree, NoSampleAtAllSumsToZeros) {
  const std::vector<SlotRun> runs = {{0, 1}, {1, 2}};
  const StepMerge merge = make_step_merge(runs, 2, {false, false});
  EXPECT_EQ(merge.non_empty_slots, 0U);
  EXPECT_EQ(std::bit_cast<uint32_t>(scheduled_sum(merge, merge.gradients, {1, 2}, 7)), 0U);
  EXPECT_EQ(scheduled_sum(merge, merge.control, {1, 2}, 7), 14.0F);
}

TEST(EvaluateSum, TilesAndTailsGiveTheBitsOfOneElementAtATime) {
  const std::vector<SlotRun> runs = {{0, 3}, {3, 7}, {7, 11}};
  const StepMerge merge = make_step_merge(runs, 11, std::vector<bool>(11, true));
  const SumProgram& program = merge.gradients;
  const uint64_t n = 5003;
  std::vector<std::vector<float>> data(program.leaves.size(), std::vector<float>(n));
  std::vector<const float*> leaves;
  for (uint32_t k = 0; k < data.size(); ++k) {
    for (uint64_t i = 0; i < n; ++i) data[k][i] = testing::slot_value(5, k, i);
    leaves.push_back(data[k].data());
  }
  std::vector<float> one_by_one(n);
  for (uint64_t i = 0; i < n; ++i) {
    std::vector<const float*> at;
    for (const float* leaf : leaves) at.push_back(leaf + i);
    evaluate_sum(program, at, &one_by_one[i], 1);
  }
  // In place over the first leaf, as the contract allows.
  evaluate_sum(program, leaves, data[0].data(), n);
  EXPECT_TRUE(same_bits(data[0], one_by_one));
}

TEST(EvaluateSum, SumsTooLargeForTheCachesHaveTheSameBits) {
  for (const uint32_t ranks : {2U, 3U}) {
    const StepMerge merge = make_step_merge(testing::random_runs(ranks, ranks, 1), ranks,
                                            std::vector<bool>(ranks, true));
    const uint64_t n = 2 * 1024 * 1024 + 5;
    std::vector<std::vector<float>> data(ranks, std::vector<float>(n));
    std::vector<const float*> leaves;
    for (uint32_t k = 0; k < ranks; ++k) {
      for (uint64_t i = 0; i < n; ++i) data[k][i] = testing::value_of(k, i);
      leaves.push_back(data[k].data());
    }
    std::vector<float> whole(n);
    evaluate_sum(merge.gradients, leaves, whole.data(), n);
    std::vector<float> half(n);
    const uint64_t middle = n / 2;
    evaluate_sum(merge.gradients, leaves, half.data(), middle);
    for (const float*& leaf : leaves) leaf += middle;
    evaluate_sum(merge.gradients, leaves, half.data() + middle, n - middle);
    EXPECT_TRUE(same_bits(whole, half));
  }
}

// An empty slot's partial counts in the control section, from the section's first element on.
TEST(SumSlice, TheControlSectionBeginsExactlyWhereTheStatisticsEnd) {
  constexpr uint64_t kControl = 5;
  const std::vector<SlotRun> runs = {{0, 1}, {1, 2}};
  const StepMerge merge = make_step_merge(runs, 2, {true, false});
  const std::vector<float> partials[] = {std::vector<float>(8, 1.0f), std::vector<float>(8, 2.0f)};
  for (const ElementRange slice : {ElementRange{0, 8}, ElementRange{0, 5}, ElementRange{5, 8},
                                   ElementRange{3, 7}, ElementRange{4, 5}, ElementRange{5, 6}}) {
    std::vector<float> out(slice.size(), -1.0f);
    sum_slice(
        merge, kControl, slice,
        [&](const Leaf& leaf) { return partials[leaf.rank].data() + slice.begin; }, out.data());
    for (uint64_t i = slice.begin; i < slice.end; ++i)
      EXPECT_EQ(out[i - slice.begin], i < kControl ? 1.0f : 3.0f) << "element " << i;
  }
}

}  // namespace
}  // namespace lockstep
