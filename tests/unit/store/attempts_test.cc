#include "comm/store/attempts.h"

#include <gtest/gtest.h>

namespace lockstep::store {
namespace {

bool is_unavailable(Code code) {
  return code == Code::kUnavailable;
}

TEST(StoreRetry, CountsItsAttemptsAndKeepsTheLastError) {
  const std::atomic<bool> stop = false;
  int made = 0;
  const Tried tried = with_retries({.attempts = 3, .pause_ms = 1}, stop, is_unavailable, [&] {
    return Status(Code::kUnavailable, "attempt " + std::to_string(++made));
  });
  EXPECT_EQ(tried.attempts, 3U);
  EXPECT_EQ(tried.status, Status(Code::kUnavailable, "attempt 3"));
}

TEST(StoreRetry, AnErrorThatStaysIsNotTriedAgain) {
  const std::atomic<bool> stop = false;
  const Tried tried = with_retries({.attempts = 3, .pause_ms = 1}, stop, is_unavailable,
                                   [] { return Status(Code::kRefused, "no"); });
  EXPECT_EQ(tried.attempts, 1U);
  EXPECT_EQ(tried.status.code(), Code::kRefused);
}

TEST(StoreRetry, NoAttemptIsMadeOnceItIsStopped) {
  std::atomic<bool> stop = false;
  const Tried tried = with_retries({.attempts = 100, .pause_ms = 1}, stop, is_unavailable, [&] {
    stop = true;
    return Status(Code::kUnavailable, "no");
  });
  EXPECT_EQ(tried.attempts, 1U);
  EXPECT_EQ(tried.status.code(), Code::kAborted);
}

}  // namespace
}  // namespace lockstep::store
