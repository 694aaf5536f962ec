#include "deploy/cli/job/job_help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "comm/run/job/job_fields.h"
#include "deploy/cli/keys/job_table.h"
#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string section(const std::string& name) {
  const auto help = job_section_help(name);
  EXPECT_TRUE(help.is_ok()) << help.status().message();
  return help.is_ok() ? *help : "";
}

void expect_lines_that_fit(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(JobHelp, NamesEverySectionAndWhatMostJobsSet) {
  const std::string help = job_help();
  for (const auto& s : wire::job_sections())
    EXPECT_THAT(help, AllOf(HasSubstr("\n  " + s.name + " "), HasSubstr(s.about)));
  EXPECT_THAT(help, HasSubstr("\n  train.global_batch "));
  EXPECT_THAT(help, Not(HasSubstr("train.loss_scale_backoff")));
}

TEST(JobHelp, AllListsEveryKey) {
  const std::string help = section("all");
  for (const JobKey& row : job_keys())
    EXPECT_THAT(help, HasSubstr("\n  " + std::string(row.key) + " "));
}

TEST(JobHelp, EverySectionListsItsKeysAndNoOthers) {
  for (const auto& s : wire::job_sections()) {
    const std::string help = section(s.name);
    const std::string table = *job_section_table(s.name);
    for (const JobKey& row : job_keys()) {
      const std::string key(row.key);
      const bool is_its = wire::section_of(key) == s.name;
      EXPECT_EQ(help.find("\n  " + key + " ") != std::string::npos, is_its) << key;
      EXPECT_EQ(table.find("\n| `" + key + "`") != std::string::npos, is_its) << key;
    }
  }
}

TEST(JobHelp, AKeyOfOneModelStandsUnderIt) {
  const std::string help = section("model");
  EXPECT_LT(help.find("\n gpt2:\n"), help.find("\n  model.n_layer "));
  EXPECT_LT(help.find("\n  model.dropout "), help.find("\n gpt2:\n"));
}

TEST(JobHelp, LinesFit) {
  expect_lines_that_fit(job_help());
  expect_lines_that_fit(section("all"));
}

TEST(JobHelp, AnUnknownSectionIsAnErrorWithTheNearest) {
  for (const auto& status :
       {job_section_help("optimiser").status(), job_section_table("optimiser").status()}) {
    EXPECT_THAT(status, FailsWith(Code::kUsage, Suggests("optimizer")));
  }
}

}  // namespace
}  // namespace lockstep
