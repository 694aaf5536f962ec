#include "data/source/base/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/source/url.h"
#include "tests/support/fails_with.h"

namespace lockstep::source {
namespace {

using testing::HasSubstr;

struct Tries {
  std::atomic<bool> stop{false};
  int made = 0;
  Status run(uint32_t attempts, const std::function<Status(int)>& answer) {
    return with_retries({.attempts = attempts, .pause_ms = 1}, stop, "x of http://h",
                        [&] { return answer(++made); });
  }
};

TEST(Retry, AsksAgainUntilTheSourceHasRecovered) {
  Tries tries;
  const Status status = tries.run(5, [](int n) {
    return n < 3 ? Status(Code::kUnavailable, "the server answers 500") : Status::ok();
  });
  EXPECT_TRUE(status.is_ok());
  EXPECT_EQ(tries.made, 3);
}

TEST(Retry, GivesUpAfterAllAttemptsAndSaysWhatHappenedToWhat) {
  Tries tries;
  const Status status =
      tries.run(4, [](int) { return Status(Code::kTimeout, "the server stalled"); });
  EXPECT_EQ(tries.made, 4);
  EXPECT_THAT(status,
              FailsWith(Code::kNoInput, Names("x of http://h"), Says("4 attempts", "stalled")));
  EXPECT_THAT(status.message(), Advises("Resume"));
}

TEST(Retry, WhatHasChangedIsBadDataAndWhatIsGoneOrForbiddenIsNotAskedForAgain) {
  Tries changed;
  EXPECT_EQ(changed.run(2, [](int) { return Status(Code::kBadData, "changed"); }).code(),
            Code::kBadData);
  EXPECT_EQ(changed.made, 2);  // a proxy may have had an old copy
  for (const Code code : {Code::kNoInput, Code::kRefused}) {
    Tries tries;
    EXPECT_EQ(tries.run(5, [&](int) { return Status(code, "no"); }).code(), Code::kNoInput);
    EXPECT_EQ(tries.made, 1);
  }
}

TEST(Retry, EndsWhenItIsStopped) {
  Tries tries;
  const Status status = tries.run(1000, [&](int) {
    tries.stop = true;
    return Status(Code::kUnavailable, "no");
  });
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_EQ(tries.made, 1);
}

TEST(Url, SecretsInAnAddressAreRefusedAndNotRepeated) {
  for (const char* url : {"https://me:geheim@host/x", "http://host/x?sig=geheim"}) {
    const auto checked = checked_url(url);
    EXPECT_THAT(checked, FailsWith(Code::kUsage, testing::Not(HasSubstr("geheim"))));
  }
  EXPECT_EQ(*checked_url("s3://bucket/a b?c//"), "s3://bucket/a b?c");
  EXPECT_EQ(checked_url("http:///x").status().code(), Code::kUsage);
  EXPECT_EQ(checked_url("http://ho st/x").status().code(), Code::kUsage);
}

}  // namespace
}  // namespace lockstep::source
