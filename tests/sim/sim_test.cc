#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

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
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = simulate(plan_of(seed));
    const Outcome again = simulate(plan_of(seed));
    EXPECT_EQ(first.trace_hash, again.trace_hash) << describe(plan_of(seed));
    EXPECT_EQ(first.events, again.events);
  }
}

TEST(Simulation, AnotherSeedGivesAnotherHistory) {
  EXPECT_NE(simulate(plan_of(1)).trace_hash, simulate(plan_of(2)).trace_hash);
}

TEST(Simulation, EveryFaultHasANameThatReplaysIt) {
  for (uint8_t kind = 0; kind < static_cast<uint8_t>(FaultKind::kCount); ++kind) {
    const FaultSpec spec(static_cast<FaultKind>(kind));
    const auto parsed = parse_fault(fault_name(spec));
    ASSERT_TRUE(parsed.has_value()) << fault_name(spec);
    EXPECT_EQ(parsed->kind, spec.kind);
  }
  EXPECT_TRUE(parse_fault("at-moment:transfer:kill").has_value());
  EXPECT_FALSE(parse_fault("nothing").has_value());
}

TEST(Simulation, EveryScenarioEndsAsItShould) {
  for (const Scenario& scenario : scenarios()) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Outcome outcome = play(scenario, seed);
      EXPECT_TRUE(outcome.failures.empty()) << "sim --scenario " << scenario.name << " --seed "
                                            << seed << ": " << outcome.failures.front().text;
    }
  }
}

}  // namespace
}  // namespace lockstep::sim
