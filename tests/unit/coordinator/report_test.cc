#include "coordinator/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockstep::coordinator {
namespace {

nlohmann::json status_of(const State& state) {
  Options options;
  options.shape = {50, 8, 3};
  options.total_steps = 70;
  return nlohmann::json::parse(status_json(state, options, {}, {}));
}

TEST(StatusReport, TellsOfSkippedSamplesAndOfATaintedLineage) {
  State state;
  EXPECT_EQ(status_of(state)["skipped_by_policy"], 0);
  EXPECT_FALSE(status_of(state).contains("tainted_from_step"));
  state.skips.push_back({1, 3, {1, 2}, "it killed two workers"});
  state.checks.tainted = 4;
  EXPECT_EQ(status_of(state)["skipped_by_policy"], 1);
  EXPECT_EQ(status_of(state)["tainted_from_step"], 4);
}

}  // namespace
}  // namespace lockstep::coordinator
