#include "comm/run/evaluation/check_after.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace lockstep::data {
namespace {

std::vector<Step> checks_until(Step last, uint64_t every) {
  std::vector<Step> found;
  for (Step applied = 0; applied <= last; ++applied)
    if (check_ordinal(applied, every)) found.push_back(applied);
  return found;
}

TEST(CheckAfter, IsEarlyAndThenAtMultiples) {
  EXPECT_EQ(checks_until(350, 100), (std::vector<Step>{1, 2, 4, 8, 16, 32, 64, 100, 200, 300}));
  EXPECT_EQ(checks_until(12, 3), (std::vector<Step>{1, 2, 3, 4, 6, 8, 9, 12}));
  EXPECT_EQ(checks_until(130, 128), (std::vector<Step>{1, 2, 4, 8, 16, 32, 64, 128}));
}

TEST(CheckAfter, ZeroSwitchesAllOff) {
  EXPECT_TRUE(checks_until(500, 0).empty());
}

TEST(CheckAfter, OrdinalsCountTheChecks) {
  for (const uint64_t every : {1, 2, 3, 5, 7, 64, 100, 1000}) {
    uint64_t ordinal = 0;
    for (Step applied = 1; applied <= 2500; ++applied) {
      const auto found = check_ordinal(applied, every);
      if (!found) continue;
      EXPECT_EQ(*found, ordinal++) << applied << " of every " << every;
    }
  }
}

TEST(CheckAfter, IsDueAfterTheLastStep) {
  const PossibleEnds ends{.evals = {true, 50, 0}, .last = 130};
  EXPECT_TRUE(check_turn(130, 100, ends));
  EXPECT_FALSE(check_turn(129, 100, ends));
  EXPECT_FALSE(check_turn(50, 100, ends)) << "an evaluation ends no run without train.patience";
  EXPECT_FALSE(check_turn(130, 0, ends));
  EXPECT_EQ(check_turn(100, 100, ends), check_ordinal(100, 100));
}

TEST(CheckAfter, IsDueAfterEachEvaluationThatMayEndTheRun) {
  const PossibleEnds ends{.evals = {true, 50, 7}, .last = 130, .are_at_evals = true};
  std::vector<Step> found;
  for (Step applied = 65; applied <= 130; ++applied)
    if (check_turn(applied, 1000, ends)) found.push_back(applied);
  EXPECT_EQ(found, (std::vector<Step>{70, 77, 84, 91, 98, 100, 105, 112, 119, 126, 130}));
}

TEST(CheckAfter, EveryTurnOfABatchIsChecked) {
  EXPECT_EQ(check_distance(50, 1), 50u);
  EXPECT_EQ(check_distance(50, 2), 51u);
  EXPECT_EQ(check_distance(50, 6), 53u);
  EXPECT_EQ(check_distance(0, 2), 0u);
  const PossibleEnds ends{.evals = {false, 100, 0, 2}, .last = 0};
  std::set<uint64_t> turns;
  for (Step applied = 65; applied <= 300; ++applied)
    if (check_turn(applied, 50, ends)) turns.insert((applied - 1) % 2);
  EXPECT_EQ(turns.size(), 2u);
}

TEST(CheckAfter, EvaluationsAtAFixedDistanceCompareAllSlots) {
  const PossibleEnds ends{.evals = {true, 1000, 4}, .last = 1000, .are_at_evals = true};
  std::set<uint64_t> slots;
  for (Step applied = 68; applied <= 200; applied += 4)
    if (const auto turn = check_turn(applied, 1000, ends)) slots.insert(*turn % 4);
  EXPECT_EQ(slots.size(), 4u);
}

}  // namespace
}  // namespace lockstep::data
