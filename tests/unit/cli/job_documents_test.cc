// Jobs whose documents are kept apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/unit/cli/job_fixture.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::context;
using ::testing::HasSubstr;
using testing::values_of;

constexpr char kTokens[] =
    "job: words\nmodel: {name: gpt2, size: d4, block: 16}\n"
    "data: {train: {path: d}}\n"
    "train: {global_batch: 128, epochs: 2}\n";

JobContext context_of(const std::string& format) {
  JobContext c = context();
  c.detect_format = [format](auto&, auto&) { return Result<std::string>(format); };
  c.hash_model_file = [](auto&, auto&) { return Result<std::string>("aa11"); };
  return c;
}

Result<wire::JobSpec> job_of(const std::vector<std::string>& overrides,
                             const std::string& format = "tokens") {
  return resolve_job(values_of(kTokens, overrides), context_of(format));
}

TEST(JobDocuments, AreAStreamUnlessSomethingElseIsSaid) {
  EXPECT_EQ(job_of({})->data().documents(), "stream");
  const auto packed = job_of({"data.documents=pack", "data.document_end=50256"});
  ASSERT_TRUE(packed.is_ok()) << packed.status().message();
  EXPECT_EQ(packed->data().documents(), "pack");
  EXPECT_EQ(packed->data().document_end(), "50256");
  EXPECT_TRUE(job_of({"data.documents=pad"}, "text").is_ok());
  EXPECT_TRUE(job_of({"data.documents=pad", "model.name=torchscript", "model.path=m.pt"}).is_ok());
}

TEST(JobDocuments, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [](const std::vector<std::string>& overrides,
                          const std::string& format = "tokens") {
    const auto job = job_of(overrides, format);
    EXPECT_EQ(job.status().code(), Code::kUsage);
    return job.status().message();
  };
  EXPECT_THAT(refused({"data.documents=packed"}), Suggests("pack"));
  EXPECT_THAT(refused({"data.document_end=0"}),
              AllOf(Names("data.document_end is 0"), Names("data.documents is stream")));
  for (const char* number : {"eot", "-1", "1.5", "12 ", "99999999999999999999"})
    EXPECT_THAT(refused({"data.documents=pad", std::string("data.document_end=") + number}),
                Advises("whole number"));
  EXPECT_THAT(refused({"data.documents=pad", "model=cnn", "model.block=0"}, "idx"),
              Says("of tokens"));
  EXPECT_THAT(refused({"data.documents=pack", "model.name=torchscript", "model.path=m.pt"}),
              AllOf(Names("model.name is torchscript"), HasSubstr("take pad")));
}

TEST(JobDocuments, OnlyPaddedOnesDifferInLength) {
  EXPECT_TRUE(job_of({"data.documents=pad", "data.shuffle=length"}, "text").is_ok());
  EXPECT_TRUE(job_of({"data.documents=pad", "data.length_classes=8"}, "text").is_ok());
  const auto refused = [](const std::vector<std::string>& overrides) {
    const auto job = job_of(overrides, "text");
    EXPECT_EQ(job.status().code(), Code::kUsage);
    return job.status().message();
  };
  EXPECT_THAT(refused({"data.documents=pack", "data.shuffle=length"}),
              AllOf(Names("data.shuffle is length"), Names("data.documents is pack")));
  EXPECT_THAT(refused({"data.length_classes=8"}), Names("data.documents is stream"));
  for (const std::string shuffle : {"length", "block"})
    EXPECT_THAT(refused({"data.documents=pad", "data.length_classes=8", "data.shuffle=" + shuffle}),
                AllOf(HasSubstr("data.shuffle is " + shuffle), HasSubstr("leave one")));
}

// 0 and empty: of a run that was begun before the keys were there.
TEST(JobDocuments, ARunFromBeforeGoesOn) {
  wire::JobSpec stored = *job_of({});
  stored.mutable_data()->clear_documents();
  JobContext resume = context_of("tokens");
  resume.stored = &stored;
  EXPECT_TRUE(resolve_job(values_of(kTokens, {}), resume).is_ok());
  EXPECT_TRUE(resolve_job(values_of(kTokens, {"data.documents=stream"}), resume).is_ok());
}

}  // namespace
}  // namespace lockstep
