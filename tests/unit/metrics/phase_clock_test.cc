#include "metrics/base/phase_clock.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

class HandClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return now_ns; }
  int64_t wall_ms() const override { return 0; }
  int64_t now_ns = 1'000;
};

TEST(PhaseClock, TimeCountsForThePhaseItWasSpentIn) {
  HandClock time;
  PhaseClock clock(time);
  time.now_ns += 5;
  EXPECT_EQ(clock.switch_to(WorkPhase::kDataWait), WorkPhase::kInit);
  time.now_ns += 7;
  clock.switch_to(WorkPhase::kForward);
  time.now_ns += 11;  // still going on: counted all the same
  const PhaseTotals totals = clock.snapshot();
  EXPECT_EQ(totals.of(WorkPhase::kInit), 5);
  EXPECT_EQ(totals.of(WorkPhase::kDataWait), 7);
  EXPECT_EQ(totals.of(WorkPhase::kForward), 11);
  EXPECT_EQ(totals.useful(), 11);
  EXPECT_EQ(clock.current(), WorkPhase::kForward);
}

TEST(PhaseClock, PhasesAddUpToTheElapsedTimeWhateverTheOrder) {
  rc::check([](const std::vector<std::pair<uint8_t, uint16_t>>& switches) {
    HandClock time;
    const int64_t begin_ns = time.now_ns;
    PhaseClock clock(time);
    PhaseTotals before = clock.snapshot();
    for (const auto& [phase, wait_ns] : switches) {
      clock.switch_to(static_cast<WorkPhase>(phase % kWorkPhases));
      time.now_ns += wait_ns;
      const PhaseTotals now = clock.snapshot();
      RC_ASSERT(now.sum() == time.now_ns - begin_ns);
      for (int64_t grown_ns : now.since(before).ns) RC_ASSERT(grown_ns >= 0);
      before = now;
    }
  });
}

TEST(PhaseClock, AScopeGivesTimeBackToThePhaseAroundIt) {
  HandClock time;
  PhaseClock clock(time, WorkPhase::kOther);
  {
    PhaseClock::Scope scope(clock, WorkPhase::kCheckpoint);
    time.now_ns += 3;
  }
  time.now_ns += 4;
  EXPECT_EQ(clock.snapshot().of(WorkPhase::kCheckpoint), 3);
  EXPECT_EQ(clock.snapshot().of(WorkPhase::kOther), 4);
}

TEST(PhaseClock, AScrapeFromAnotherThreadNeverSeesTimeMissingOrTwice) {
  SystemClock time;
  const int64_t before_ns = time.monotonic_ns();
  PhaseClock clock(time);
  const int64_t after_ns = time.monotonic_ns();
  std::atomic<bool> done = false;
  std::thread training([&] {
    for (size_t i = 0; i < 20'000; ++i) clock.switch_to(static_cast<WorkPhase>(i % kWorkPhases));
    done = true;
  });
  while (!done) {
    const int64_t earliest_ns = time.monotonic_ns() - after_ns;
    const int64_t sum_ns = clock.snapshot().sum();
    const int64_t latest_ns = time.monotonic_ns() - before_ns;
    ASSERT_GE(sum_ns, earliest_ns);
    ASSERT_LE(sum_ns, latest_ns);
  }
  training.join();
}

TEST(PhaseClock, EveryPhaseHasANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kWorkPhases; ++i) {
    const std::string_view name = phase_name(static_cast<WorkPhase>(i));
    EXPECT_FALSE(name.empty());
    for (std::string_view other : names) EXPECT_NE(name, other);
    names.push_back(name);
  }
}

}  // namespace
}  // namespace lockstep
