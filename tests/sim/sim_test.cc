#include <gtest/gtest.h>

#include "tests/sim/simulation.h"

namespace lockstep::sim {
namespace {

TEST(Simulation, AnUndisturbedClusterTrainsToTheEnd) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Outcome outcome = simulate(plan_with(seed, {}));
    EXPECT_TRUE(outcome.failures.empty()) << outcome.failures.front().text;
    EXPECT_EQ(outcome.starts, 1u);
  }
}

TEST(Simulation, OneSeedGivesOneHistory) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Outcome first = simulate(plan_of(seed));
    const Outcome again = simulate(plan_of(seed));
    EXPECT_EQ(first.trace_hash, again.trace_hash);
    EXPECT_EQ(first.events, again.events);
  }
}

TEST(Simulation, AnotherSeedGivesAnotherHistory) {
  EXPECT_NE(simulate(plan_of(1)).trace_hash, simulate(plan_of(2)).trace_hash);
}

}  // namespace
}  // namespace lockstep::sim
