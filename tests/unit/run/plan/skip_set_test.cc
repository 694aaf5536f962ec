#include "comm/run/plan/skip_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace lockstep::data {
namespace {

TEST(SkipSet, AnEmptyOneChangesNoPlan) {
  const SkipSet skips;
  const StepPlan plan = plan_step({10, 4, 3}, 2);  // two samples left for three slots
  EXPECT_TRUE(skips.empty());
  EXPECT_FALSE(skips.touches(2));
  EXPECT_EQ(skips.active_slots(plan, 2, 3), non_empty_slots(plan, 3));
  EXPECT_EQ(skips.counted_samples(plan, 2, 3), 2U);
}

TEST(SkipSet, OnlyTheNamedSlotsOfTheNamedStepAreLeftOut) {
  SkipSet skips;
  skips.add(5, 1, 3);
  const StepPlan plan = plan_step({100, 10, 4}, 5);
  EXPECT_EQ(skips.active_slots(plan, 5, 4), (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(skips.counted_samples(plan, 5, 4), 5U);  // 2 + 3 of 2, 3, 2, 3 are out
  EXPECT_EQ(skips.counted_samples(plan_step({100, 10, 4}, 4), 4, 4), 10U);
  skips.add(5, 0, 4);
  EXPECT_EQ(skips.counted_samples(plan, 5, 4), 0U);
}

RC_GTEST_PROP(SkipSet, HoldsTheUnionOfWhatWasAddedInAnyOrder, ()) {
  const auto slots = *rc::gen::inRange<uint32_t>(1, 30);
  const RunShape shape{500, *rc::gen::inRange<uint64_t>(slots, 100), slots};
  SkipSet skips;
  std::set<uint32_t> out;
  const int entries = *rc::gen::inRange(0, 6);
  for (int i = 0; i < entries; ++i) {
    const auto begin = *rc::gen::inRange<uint32_t>(0, slots);
    const auto end = *rc::gen::inRange<uint32_t>(begin, slots + 1);
    skips.add(3, begin, end);
    for (uint32_t slot = begin; slot < end; ++slot) out.insert(slot);
  }
  const StepPlan plan = plan_step(shape, 3);
  const std::vector<bool> active = skips.active_slots(plan, 3, slots);
  uint64_t counted = 0;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    const uint64_t samples = slot_positions(plan, slot, slots).size();
    RC_ASSERT(skips.contains(3, slot) == out.contains(slot));
    RC_ASSERT(active[slot] == (samples > 0 && !out.contains(slot)));
    if (!out.contains(slot)) counted += samples;
  }
  RC_ASSERT(skips.counted_samples(plan, 3, slots) == counted);
  RC_ASSERT(skips.empty() == out.empty());
}

}  // namespace
}  // namespace lockstep::data
