#include "deploy/preflight/doors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/rpc/asio_transport.h"
#include "tests/support/fails_with.h"

namespace lockstep::preflight {
namespace {

using ::testing::AllOf;

const Finding& about(const std::vector<Finding>& findings, const std::string& subject) {
  for (const Finding& finding : findings)
    if (finding.subject == subject) return finding;
  static const Finding kNone{"none", Grade::kGood, ""};
  return kNone;
}

TEST(DoorsWords, TheSameVersionAtTheSameTimeIsGood) {
  const auto findings =
      judge_words(words_of("lockstep 1 (a)", 5'000), "lockstep 1 (a)", 5'900, "x");
  EXPECT_EQ(findings.size(), 3u);
  for (const Finding& finding : findings) EXPECT_EQ(finding.grade, Grade::kGood) << finding.text;
}

TEST(DoorsWords, AnotherTimeIsAWarningWithItsSize) {
  const auto ahead = judge_words(words_of("v", 10'000), "v", 13'240, "rank 0");
  EXPECT_EQ(about(ahead, "clock").grade, Grade::kWarning);
  EXPECT_THAT(about(ahead, "clock").text, AllOf(Names("rank 0"), Says("3.2 s ahead")));
  const auto behind = judge_words(words_of("v", 10'000), "v", 8'000, "rank 0");
  EXPECT_THAT(about(behind, "clock").text, AllOf(Names("rank 0"), Says("2.0 s behind")));
}

TEST(DoorsWords, AnotherVersionIsBadAndBothAreNamed) {
  const Finding found =
      about(judge_words(words_of("lockstep 2", 0), "lockstep 1", 0, "rank 3"), "version");
  EXPECT_EQ(found.grade, Grade::kBad);
  EXPECT_THAT(found.text, AllOf(Names("rank 3"), Says("lockstep 1", "lockstep 2")));
}

TEST(DoorsWords, WhatIsNoAnswerIsBad) {
  for (const char* words : {"", " ", "lockstep", "12", "x 12"})
    EXPECT_EQ(judge_words(words, "v", 0, "rank 0")[0].grade, Grade::kBad) << words;
}

class Doors : public ::testing::Test {
 protected:
  std::vector<Finding> knock(const rpc::Address& address, const rpc::Token& token) {
    Knock one(transport_, address, token, "v1", "rank 0");
    constexpr int64_t kDeadlineMs = 60'000;  // of a test that has failed
    const int64_t begin_ms = loop_.now_ms();
    while (!one.is_over() && loop_.now_ms() - begin_ms < kDeadlineMs) loop_.run_one(10);
    EXPECT_TRUE(one.is_over());
    one.give_up();
    return one.findings();
  }

  std::unique_ptr<Logger> logger_ = null_logger();
  rpc::AsioLoop loop_;
  rpc::AsioTransport transport_{loop_};
};

TEST_F(Doors, WhoHasTheTokenIsTold) {
  auto door = Door::open(transport_, "127.0.0.1", "", rpc::Token("secret"), "v1", *logger_);
  ASSERT_TRUE(door.is_ok()) << door.status().message();
  const auto findings = knock((*door)->address(), rpc::Token("secret"));
  EXPECT_EQ(about(findings, "network").grade, Grade::kGood);
  EXPECT_EQ(about(findings, "clock").grade, Grade::kGood);
  EXPECT_EQ(about(findings, "version").text, "the same everywhere: v1");
}

TEST_F(Doors, WhoHasNotIsAFindingOfItsToken) {
  auto door = Door::open(transport_, "127.0.0.1", "", rpc::Token("secret"), "v1", *logger_);
  ASSERT_TRUE(door.is_ok());
  const auto findings = knock((*door)->address(), rpc::Token("other"));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].subject, "token") << findings[0].text;
  EXPECT_EQ(findings[0].grade, Grade::kBad);
}

TEST_F(Doors, APortWhereNobodyListensIsAFindingOfThePort) {
  rpc::Address address;
  {
    auto door = Door::open(transport_, "127.0.0.1", "", rpc::Token("secret"), "v1", *logger_);
    ASSERT_TRUE(door.is_ok());
    address = (*door)->address();
  }
  const auto findings = knock(address, rpc::Token("secret"));
  EXPECT_EQ(findings[0].subject, "port") << findings[0].text;
}

TEST_F(Doors, ANameThatLeadsNowhereIsAFindingOfTheName) {
  const auto findings = knock({"nobody.invalid", 1}, rpc::Token("secret"));
  EXPECT_EQ(findings[0].subject, "name") << findings[0].text;
}

// The sentence of an error is free to change: what it says decides nothing.
TEST(DoorsFailure, WhatStandsInTheWayDecidesTheFinding) {
  const auto subject = [](Code code, Obstacle obstacle) {
    const Status why = Status(code, "the name, certificate and port were refused", obstacle);
    return judge_failure(why.with_context("10.0.0.1:1"), "rank 0").subject;
  };
  EXPECT_EQ(subject(Code::kTimeout, Obstacle::kName), "name");
  EXPECT_EQ(subject(Code::kUnavailable, Obstacle::kPort), "port");
  EXPECT_EQ(subject(Code::kRefused, Obstacle::kCertificate), "certificate");
  EXPECT_EQ(subject(Code::kRefused, Obstacle::kVersion), "version");
  EXPECT_EQ(subject(Code::kRefused, Obstacle::kNone), "token");
  EXPECT_EQ(subject(Code::kUnavailable, Obstacle::kNone), "route");
}

}  // namespace
}  // namespace lockstep::preflight
