// Edges of the schedules; tests/golden holds their whole course against PyTorch's.
#include "worker/optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

wire::ScheduleSpec spec_of(const std::string& name) {
  wire::ScheduleSpec spec;
  spec.set_name(name);
  spec.set_gamma(0.5);
  spec.set_step_every(10);
  spec.set_pct_start(0.3);
  spec.set_div_factor(25);
  spec.set_final_div_factor(1e4);
  spec.set_cycle_up(3);
  return spec;
}

TEST(Schedule, StaysAtItsLastValueAfterItsLength) {
  for (const char* name : {"linear", "cosine", "onecycle"}) {
    wire::ScheduleSpec spec = spec_of(name);
    spec.set_total_steps(20);
    const auto schedule = Schedule::create(spec, 0.1);
    const double end = schedule->lr(1'000, 5'000);
    EXPECT_GE(end, 0);
    EXPECT_LT(end, 1e-4);
    EXPECT_EQ(schedule->lr(20, 5'000), end) << name;
  }
}

TEST(Schedule, IsFiniteAndNotNegativeInTheShortestRuns) {
  for (const char* name :
       {"constant", "linear", "cosine", "step", "exponential", "cyclic", "onecycle"}) {
    for (const uint64_t warmup : {0u, 1u, 5u}) {
      wire::ScheduleSpec spec = spec_of(name);
      spec.set_warmup_steps(warmup);
      const auto schedule = Schedule::create(spec, 0.1);
      for (uint64_t total = 1; total <= 6; ++total) {
        for (Step step = 0; step < total; ++step) {
          const double lr = schedule->lr(step, total);
          EXPECT_TRUE(std::isfinite(lr) && lr >= 0 && lr <= 0.1 + 1e-12)
              << name << " step " << step << " of " << total << ": " << lr;
        }
      }
    }
  }
}

TEST(Schedule, RefusesUnknownNamesAndImpossibleValues) {
  EXPECT_THAT(Schedule::create(spec_of("cosin"), 0.1).status().message(), Suggests("cosine"));
  wire::ScheduleSpec spec = spec_of("step");
  spec.set_step_every(0);
  EXPECT_EQ(Schedule::create(spec, 0.1).status().code(), Code::kUsage);
  spec = spec_of("cyclic");
  spec.set_min_lr(0.2);
  EXPECT_THAT(Schedule::create(spec, 0.1).status().message(), HasSubstr("schedule.min_lr"));
  spec = spec_of("onecycle");
  spec.set_pct_start(1);
  EXPECT_THAT(Schedule::create(spec, 0.1).status().message(), HasSubstr("schedule.pct_start"));
}

}  // namespace
}  // namespace lockstep
