#include "deploy/preflight/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::preflight {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Report report_of(uint32_t rank, std::vector<Finding> findings) {
  return {rank, "node", std::move(findings)};
}

TEST(Findings, AReportComesBackAsItWas) {
  const Report report = report_of(
      7, {{"port", Grade::kBad, "a \"quoted\" word"}, {"clock", Grade::kWarning, "2.5 s"}});
  const auto read = report_from_json(to_json(report));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(*read, report);
  EXPECT_EQ(worst_of(*read), Grade::kBad);
}

TEST(Findings, WhatIsNoReportIsRefused) {
  for (const char* text :
       {"", "[]", "{}", "\"rank\"", R"({"rank": -1, "host": "a", "findings": []})",
        R"({"rank": "0", "host": "a", "findings": []})",
        R"({"rank": 0, "host": 3, "findings": []})",
        R"({"rank": 0, "host": "a", "findings": [{"subject": "a", "text": "b"}]})",
        R"({"rank": 0, "host": "a", "findings": [{"subject":"a","text":"b","grade":"fine"}]})"})
    EXPECT_EQ(report_from_json(text).status().code(), Code::kUsage) << text;
}

TEST(Findings, ControlCharactersOfAnotherHostDoNotReachTheTerminal) {
  const auto read = report_from_json(to_json(report_of(0, {{"name", Grade::kBad, "a\x1b[2Jb"}})));
  ASSERT_TRUE(read.is_ok());
  EXPECT_EQ(read->findings[0].text, "a?[2Jb");
}

TEST(Findings, TheTableSaysTheSameWordsOnceWithTheRanks) {
  const Finding good{"version", Grade::kGood, "the same everywhere"};
  const Finding bad{"route", Grade::kBad, "no way"};
  const std::string table = table_of({report_of(0, {good}), report_of(1, {good, good}),
                                      report_of(2, {good, bad}), report_of(4, {good})});
  EXPECT_THAT(table, HasSubstr("ok       version    ranks 0-2, 4: the same everywhere\n"));
  EXPECT_THAT(table, HasSubstr("FAILED   route      rank 2: no way\n"));
  EXPECT_THAT(table, Not(HasSubstr("warning")));
}

}  // namespace
}  // namespace lockstep::preflight
