#include "comm/run/plan/check_after.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lockstep::data
