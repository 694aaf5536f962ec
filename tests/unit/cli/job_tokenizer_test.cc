// Jobs whose text becomes tokens of a vocabulary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deploy/cli/run/same_run.h"
#include "tests/support/fails_with.h"
#include "tests/unit/cli/job_fixture.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::context;
using ::testing::HasSubstr;
using testing::values_of;

constexpr char kText[] =
    "job: words\nmodel: {name: gpt2, size: d4, block: 16}\n"
    "data: {train: {path: d}, tokenizer: tokenizer.json}\n"
    "train: {global_batch: 128, epochs: 2}\n";

JobContext text_context(const std::string& format = "text") {
  JobContext c = context();
  c.detect_format = [format](auto&, auto&) { return Result<std::string>(format); };
  c.hash_tokenizer = [](const std::string& path) {
    if (path == "/jobs/tokenizer.json" || path == "/moved/gpt2") return Result<std::string>("aa11");
    return Result<std::string>(Status(Code::kNoInput, path + " is not there"));
  };
  return c;
}

TEST(JobTokenizer, ItsPathIsRelativeToTheJobFileAndItsContentIsPartOfTheRun) {
  const auto job = resolve_job(values_of(kText), text_context());
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->data().tokenizer(), "/jobs/tokenizer.json");
  EXPECT_EQ(job->data().tokenizer_sha256(), "aa11");
}

TEST(JobTokenizer, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [](const std::vector<std::string>& overrides,
                          const std::string& format = "text") {
    const auto job = resolve_job(values_of(kText, overrides), text_context(format));
    EXPECT_EQ(job.status().code(), Code::kUsage);
    return job.status().message();
  };
  EXPECT_THAT(refused({"data.tokenizer=", "data.tokenizer_sha256=aa11"}), Advises("vocabulary"));
  EXPECT_THAT(refused({"data.tokenizer=https://h/tokenizer.json"}), Advises("copy it"));
  EXPECT_THAT(refused({"data.tokenizer_sha256=bb22"}),
              AllOf(HasSubstr("/jobs/tokenizer.json"), HasSubstr("aa11"), HasSubstr("bb22")));
  EXPECT_THAT(refused({}, "tokens"), AllOf(HasSubstr("data.train.format"), Says("is for text")));
  EXPECT_THAT(refused({"data.eval.path=d", "data.eval.format=tokens"}),
              AllOf(HasSubstr("data.eval.format"), Says("is for text")));
  const auto nowhere = resolve_job(values_of(kText, {"data.tokenizer=x"}), text_context());
  EXPECT_EQ(nowhere.status().code(), Code::kNoInput);
}

TEST(JobTokenizer, AResumeTakesTheSameContentFromWhereverItLies) {
  const auto stored = resolve_job(values_of(kText), text_context());
  ASSERT_TRUE(stored.is_ok()) << stored.status().message();
  JobContext resume = text_context();
  resume.stored = &*stored;
  resume.check_same_run = check_same_run;
  EXPECT_TRUE(resolve_job(values_of(kText, {"data.tokenizer=/moved/gpt2"}), resume).is_ok());
  resume.hash_tokenizer = [](auto&) { return Result<std::string>("cc33"); };
  const auto changed = resolve_job(values_of(kText), resume);
  EXPECT_THAT(changed, FailsWith(Code::kUsage, HasSubstr("aa11"), HasSubstr("cc33")));
}

}  // namespace
}  // namespace lockstep
