#include "metrics/base/rate_window.h"

#include <gtest/gtest.h>

#include "metrics/base/goodput.h"

namespace lockstep {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(RateWindow, ShowsTheRateOfAConstantStream) {
  RateWindow window;
  // 128 samples every 10 ms, for longer than the window.
  int64_t now_ns = 0;
  for (int step = 0; step <= 3'000; ++step, now_ns += kSecond / 100) {
    window.update(now_ns, 128.0 * step);
  }
  EXPECT_NEAR(window.per_second(now_ns - kSecond / 100), 12'800, 1);
}

TEST(RateWindow, ForgetsHowItWasBeforeTheWindow) {
  RateWindow window;
  double total = 0;
  for (int second = 0; second < 100; ++second) window.update(second * kSecond, total += 1'000);
  for (int second = 100; second < 130; ++second) window.update(second * kSecond, total += 10);
  EXPECT_NEAR(window.per_second(129 * kSecond), 10, 0.01);
}

TEST(RateWindow, FallsWhenNothingHappensAnyMore) {
  RateWindow window;
  for (int second = 0; second <= 10; ++second) window.update(second * kSecond, 100.0 * second);
  EXPECT_NEAR(window.per_second(10 * kSecond), 100, 0.01);
  EXPECT_LT(window.per_second(20 * kSecond), 60);
  EXPECT_EQ(window.per_second(60 * kSecond), 0);
}

TEST(RateWindow, IsZeroUntilTwoMomentsAreKnown) {
  RateWindow window;
  EXPECT_EQ(window.per_second(kSecond), 0);
  window.update(kSecond, 500);
  EXPECT_EQ(window.per_second(kSecond), 0);
}

TEST(RateWindow, ATotalThatStartsAnewGivesNoNegativeRate) {
  RateWindow window;
  window.update(0, 1'000);
  window.update(2 * kSecond, 2'000);
  window.update(3 * kSecond, 10);
  EXPECT_GE(window.per_second(4 * kSecond), 0);
  window.update(5 * kSecond, 30);
  EXPECT_NEAR(window.per_second(5 * kSecond), 10, 0.01);
}

TEST(Goodput, IsTheShareOfWallTimeInStepsThatSurvive) {
  Goodput goodput(10 * kSecond);
  EXPECT_EQ(goodput.ratio(10 * kSecond), 0);
  for (int step = 0; step < 8; ++step) goodput.step_survives(1);
  EXPECT_DOUBLE_EQ(goodput.ratio(20 * kSecond), 0.8);
  goodput.steps_undone(3);
  EXPECT_DOUBLE_EQ(goodput.ratio(20 * kSecond), 0.5);
}

TEST(Goodput, NeverExceedsOneWhenTheWorkersClockRunsFaster) {
  Goodput goodput(0);
  goodput.step_survives(1.001);
  EXPECT_EQ(goodput.ratio(kSecond), 1);
}

}  // namespace
}  // namespace lockstep
