// data.mix: a list of maps, from the job file to the job and back.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "coordinator/state/identity.h"
#include "deploy/cli/job/job_print.h"
#include "deploy/cli/job/job_schema.h"
#include "deploy/cli/keys/job_list.h"
#include "deploy/cli/run/same_run.h"
#include "tests/support/fails_with.h"
#include "tests/unit/cli/job_fixture.h"

namespace lockstep {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using testing::context;
using ::testing::HasSubstr;

constexpr char kMixed[] =
    "model: cnn\ntrain: {global_batch: 128, epochs: 2}\ndata:\n"
    "  train: web\n"
    "  mix_weight: 7\n"
    "  mix:\n"
    "    - {path: code, weight: 2}\n"
    "    - path: /data/books\n"
    "      fraction: 0.5\n"
    "      format: npy_nhwc\n";

Result<wire::JobSpec> resolve_mixed(const std::string& yaml,
                                    const std::vector<std::string>& said = {},
                                    const wire::JobSpec* stored = nullptr) {
  auto values = parse_job_yaml(yaml, "job.yaml");
  if (!values.is_ok()) return values.status();
  auto overrides = parse_job_overrides(said);
  if (!overrides.is_ok()) return overrides.status();
  overlay(*values, *overrides);
  JobContext machine = context();
  machine.stored = stored;
  machine.check_same_run = check_same_run;
  return resolve_job(*values, machine);
}

wire::DataSpec mixed_data(const std::vector<std::string>& said = {}) {
  const auto job = resolve_mixed(kMixed, said);
  EXPECT_TRUE(job.is_ok()) << job.status().message();
  return job->data();
}

std::string refusal_of(const std::string& yaml, const std::vector<std::string>& said = {}) {
  const auto job = resolve_mixed(yaml, said);
  EXPECT_EQ(job.status().code(), Code::kUsage);
  return job.status().message();
}

std::string job_with_mix(const std::string& mix) {
  return "model: cnn\ntrain: {global_batch: 128, epochs: 2}\ndata: {train: web, mix: " + mix +
         "}\n";
}

TEST(JobMixture, IsAListOfMapsWithDefaultsOfItsOwn) {
  const wire::DataSpec data = mixed_data();
  EXPECT_EQ(data.mix_weight(), 7u);
  ASSERT_EQ(data.mix_size(), 2);
  EXPECT_EQ(data.mix(0).path(), "/jobs/code");
  EXPECT_EQ(data.mix(0).weight(), 2u);
  EXPECT_EQ(data.mix(0).fraction(), 1);
  EXPECT_EQ(data.mix(0).format(), "idx");  // as found
  EXPECT_EQ(data.mix(1).path(), "/data/books");
  EXPECT_EQ(data.mix(1).weight(), 1u);
  EXPECT_EQ(data.mix(1).fraction(), 0.5);
  EXPECT_EQ(data.mix(1).format(), "npy_nhwc");
}

TEST(JobMixture, OneElementIsChangedByItsNumber) {
  const wire::DataSpec data = mixed_data({"data.mix.0.weight=5", "data.mix.1.path=other"});
  EXPECT_EQ(data.mix(0).weight(), 5u);
  EXPECT_EQ(data.mix(0).path(), "/jobs/code");
  EXPECT_EQ(data.mix(1).path(), "/home/me/other");
}

TEST(JobMixture, AListThatIsGivenAnewReplacesTheOther) {
  const wire::DataSpec data = mixed_data({"data.mix=[{path: /x, weight: 3}]"});
  ASSERT_EQ(data.mix_size(), 1);
  EXPECT_EQ(data.mix(0).path(), "/x");
  EXPECT_EQ(mixed_data({"data.mix=[]"}).mix_size(), 0);
  EXPECT_EQ(mixed_data({"data.mix=[]", "data.mix.0={path: /y}"}).mix(0).path(), "/y");
}

TEST(JobMixture, IsPrintedAsWhatReadsBackTheSame) {
  for (const char* yaml : {kMixed, testing::kMinimal}) {
    const auto job = resolve_mixed(yaml);
    ASSERT_TRUE(job.is_ok()) << job.status().message();
    const auto again = resolve_mixed(job_yaml(*job));
    ASSERT_TRUE(again.is_ok()) << again.status().message() << "\n" << job_yaml(*job);
    EXPECT_TRUE(MessageDifferencer::Equals(*again, *job)) << job_yaml(*job);
  }
}

TEST(JobMixture, WhatIsWrongIsToldWithItsNumberAndItsPlace) {
  EXPECT_THAT(refusal_of(job_with_mix("[{path: /a}, {path: /b, weight: 0}]")),
              AllOf(Names("data.mix.1.weight is \"0\""), HasSubstr("job.yaml:3")));
  EXPECT_THAT(refusal_of(job_with_mix("[{path: /a}, {weight: 2}]")),
              AllOf(Names("data.mix.1.path"), Says("missing")));
  EXPECT_THAT(refusal_of(job_with_mix("[{path: /a, wieght: 2}]")), Suggests("data.mix.N.weight"));
  EXPECT_THAT(refusal_of(job_with_mix("[/a]")), AllOf(Names("data.mix.0"), Advises("keys")));
  EXPECT_THAT(refusal_of(job_with_mix("{path: /a}")), Advises("list of maps"));
  EXPECT_THAT(refusal_of(job_with_mix("/a")), Advises("list of maps"));
  EXPECT_THAT(refusal_of(job_with_mix("[]"), {"data.mix.N.path=/a"}), HasSubstr("unknown key"));
  EXPECT_THAT(refusal_of(job_with_mix("[]"), {"data.mix.1.path=/a"}),
              AllOf(Names("data.mix.0.path"), Says("missing")));
  EXPECT_THAT(refusal_of(job_with_mix("[]"), {"data.mix.9999.path=/a"}), Says("63"));
  EXPECT_THAT(refusal_of(job_with_mix("[]"), {"data.mix.99999999999.path=/a"}),
              HasSubstr("unknown"));
  EXPECT_THAT(refusal_of(job_with_mix("[]"), {"data.mix.01.path=/a"}), HasSubstr("unknown key"));
  EXPECT_THAT(refusal_of(job_with_mix("[{path: /a, format: text}]")),
              AllOf(Names("data.mix.0.format is text"), HasSubstr("only gpt2")));
}

TEST(JobMixture, AnotherOneIsAnotherRun) {
  const auto stored = resolve_mixed(kMixed);
  ASSERT_TRUE(stored.is_ok());
  const auto told = [&](const std::vector<std::string>& said) {
    const auto job = resolve_mixed(kMixed, said, &*stored);
    return job.is_ok() ? std::string("ok") : job.status().message();
  };
  EXPECT_EQ(told({}), "ok");
  EXPECT_EQ(told({"data.mix.0.path=/moved"}), "ok");  // what lies there is compared when it is read
  EXPECT_THAT(told({"data.mix.0.weight=3"}),
              AllOf(Names("data.mix.0.weight is 2"), Says("asked to be 3")));
  EXPECT_THAT(told({"data.mix_weight=6"}), Names("data.mix_weight is 7"));
  EXPECT_THAT(told({"data.mix.1.fraction=1"}), Names("data.mix.1.fraction is 0.5"));
  EXPECT_THAT(told({"data.mix=[{path: /jobs/code, weight: 2}]"}),
              AllOf(Names("data.mix.1.weight is 1"), Says("(not set)")));
  EXPECT_THAT(told({"data.mix=[]"}), Says("order version is 3"));
}

TEST(JobMixture, ARunWithoutOneHasNothingOfItInItsIdentity) {
  const auto job = resolve_mixed(testing::kMinimal);
  for (const auto& entry : coordinator::identity_of(*job, {}))
    EXPECT_THAT(entry.key, ::testing::Not(HasSubstr("mix")));
}

}  // namespace
}  // namespace lockstep
