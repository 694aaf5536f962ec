#include "comm/run/directory/pulse.h"

#include <gtest/gtest.h>

#include "comm/base/file.h"
#include "comm/run/directory/layout.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::coordinator {
namespace {

using Verdict = PulseWatch::Verdict;

TEST(PulseFile, IsReadAsItWasWrittenAndAnythingElseIsNoPulse) {
  const TemporaryDirectory temporary;
  const std::string dir = temporary.path();
  EXPECT_FALSE(read_pulse(dir).has_value());
  ASSERT_TRUE(write_pulse(dir, {7, 1234, std::nullopt}).is_ok());
  EXPECT_EQ(read_pulse(dir), (Pulse{7, 1234, std::nullopt}));
  ASSERT_TRUE(write_pulse(dir, {7, 1235, 75}).is_ok());
  EXPECT_EQ(read_pulse(dir), (Pulse{7, 1235, 75}));
  for (const char* text : {"", "7", "7 1", "a b alive", "7 1 dead", "7 1 ended", "7 1 ended 999"}) {
    ASSERT_TRUE(replace_file(rundir::file_in(dir, rundir::kPulse), text).is_ok());
    EXPECT_FALSE(read_pulse(dir).has_value()) << text;
  }
}

// Looks every kPulseLookMs for `ms`, and returns the last verdict.
Verdict watch(PulseWatch& watch, const Pulse& pulse, Term claim, int64_t& now_ms, int64_t ms) {
  Verdict verdict = Verdict::kWait;
  for (const int64_t end_ms = now_ms + ms; now_ms < end_ms; now_ms += kPulseLookMs)
    verdict = watch.see(pulse, claim, now_ms);
  return verdict;
}

TEST(PulseWatch, APulseThatStandsStillForHalfAMinuteIsNobodys) {
  PulseWatch it;
  int64_t now_ms = 1'000'000;
  EXPECT_EQ(watch(it, {1, 5, {}}, 1, now_ms, kStillMs), Verdict::kWait);
  EXPECT_EQ(watch(it, {1, 5, {}}, 1, now_ms, kPulseLookMs), Verdict::kLost);
}

TEST(PulseWatch, ABeatOrAClaimBeginsTheWaitAnew) {
  PulseWatch it;
  int64_t now_ms = 0;
  EXPECT_EQ(watch(it, {1, 5, {}}, 1, now_ms, kStillMs), Verdict::kWait);
  EXPECT_EQ(watch(it, {1, 6, {}}, 1, now_ms, kStillMs), Verdict::kWait);
  EXPECT_EQ(watch(it, {1, 6, {}}, 2, now_ms, kStillMs), Verdict::kWait)
      << "somebody is about to take over";
  EXPECT_EQ(watch(it, {1, 6, {}}, 2, now_ms, kPulseLookMs), Verdict::kLost)
      << "and died before the first beat";
}

TEST(PulseWatch, TimeInWhichTheAgentItselfWasStoppedDoesNotCount) {
  PulseWatch it;
  int64_t now_ms = 0;
  EXPECT_EQ(watch(it, {1, 5, {}}, 1, now_ms, kStillMs / 2), Verdict::kWait);
  now_ms += 10 * kStillMs;  // with the coordinator, as when a laptop sleeps
  EXPECT_EQ(it.see(Pulse{1, 5, {}}, 1, now_ms), Verdict::kWait);
}

TEST(PulseWatch, AConnectionInBetweenBeginsTheWaitAnew) {
  PulseWatch it;
  int64_t now_ms = 0;
  EXPECT_EQ(watch(it, {1, 5, {}}, 1, now_ms, kStillMs), Verdict::kWait);
  it.forget();
  EXPECT_EQ(watch(it, {1, 5, {}}, 1, now_ms, kStillMs), Verdict::kWait);
}

TEST(PulseWatch, WithoutAPulseThereWasNeverACoordinatorToLose) {
  PulseWatch it;
  for (int64_t now_ms = 0; now_ms < 10 * kStillMs; now_ms += kPulseLookMs)
    EXPECT_EQ(it.see(std::nullopt, 0, now_ms), Verdict::kWait);
}

TEST(PulseWatch, ARunThatHasEndedIsNotTakenOver) {
  PulseWatch it;
  int64_t now_ms = 0;
  EXPECT_EQ(watch(it, {1, 5, 75}, 1, now_ms, 2 * kStillMs), Verdict::kEnded);
}

}  // namespace
}  // namespace lockstep::coordinator
