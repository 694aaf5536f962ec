#include "data/doctor/windows.h"

#include <gtest/gtest.h>

namespace lockstep::doctor {
namespace {

// Stands still unless it is told.
class HandClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return now_ns; }
  int64_t wall_ms() const override { return 0; }
  int64_t now_ns = 0;
};

constexpr int64_t kMs = 1'000'000;
const WindowPlan kPlan{.windows = 3, .window_s = 0.1};

TEST(Windows, ARateIsWhatWasDoneOverTheTimeItTook) {
  HandClock clock;
  Windows windows(clock, kPlan);
  const auto rate = windows.measure([&] {
    clock.now_ns += 10 * kMs;
    return Result<uint64_t>(uint64_t{5});
  });
  ASSERT_TRUE(rate.is_ok());
  EXPECT_EQ(rate->windows, 3u);
  EXPECT_DOUBLE_EQ(rate->median, 500);
  EXPECT_DOUBLE_EQ(rate->low, 500);
}

TEST(Windows, WhatIsDoneAsideIsInNoWindow) {
  HandClock clock;
  Windows windows(clock, kPlan);
  const auto rate = windows.measure([&] {
    windows.aside([&] { return clock.now_ns += 700 * kMs; });
    clock.now_ns += 10 * kMs;
    return Result<uint64_t>(uint64_t{5});
  });
  EXPECT_DOUBLE_EQ(rate->median, 500);
}

TEST(Windows, PartsThatTakeMuchLongerThanPlannedGiveFewerWindows) {
  HandClock clock;
  Windows windows(clock, kPlan);
  int parts = 0;
  const auto rate = windows.measure([&] {
    ++parts;
    clock.now_ns += 200 * kMs;  // two of them are more than 300 ms
    return Result<uint64_t>(uint64_t{6});
  });
  EXPECT_EQ(parts, 2);
  EXPECT_EQ(rate->windows, 2u);
  EXPECT_DOUBLE_EQ(rate->median, 30);
}

TEST(Windows, WhenTimeIsOverTheOpenWindowEndsWithWhatItHas) {
  HandClock clock;
  WindowPlan plan = kPlan;
  plan.is_over = [&] { return clock.now_ns >= 30 * kMs; };
  Windows windows(clock, plan);
  const auto rate = windows.measure([&] {
    clock.now_ns += 10 * kMs;
    return Result<uint64_t>(uint64_t{5});
  });
  EXPECT_EQ(rate->windows, 1u);
  EXPECT_DOUBLE_EQ(rate->median, 500);
  EXPECT_EQ(clock.now_ns, 30 * kMs);
}

TEST(Windows, AnErrorOfAPartIsTheErrorOfAll) {
  HandClock clock;
  Windows windows(clock, kPlan);
  const auto rate =
      windows.measure([] { return Result<uint64_t>(Status(Code::kBadData, "cut off")); });
  EXPECT_EQ(rate.status().code(), Code::kBadData);
}

}  // namespace
}  // namespace lockstep::doctor
