#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/limits.h"
#include "deploy/cli/job/job_values.h"
#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const std::string& yaml) {
  const Result<JobValues> values = parse_job_yaml(yaml, "job.yaml");
  if (values.is_ok()) return "(no error)";
  EXPECT_EQ(values.status().code(), Code::kUsage);
  EXPECT_EQ(values.status().message().find('\n'), std::string::npos) << "one line only";
  return values.status().message();
}

std::string text_of(const JobValues& values, std::string_view key) {
  const auto it = values.find(key);
  return it == values.end() ? "(absent)" : testing::PrintToString(it->second.items);
}

TEST(JobFile, NestedKeysBecomePathsWithTheLineWhereTheyWereSaid) {
  const auto values = parse_job_yaml("job: x\ntrain:\n  epochs: 3\n", "job.yaml");
  ASSERT_TRUE(values.is_ok());
  EXPECT_EQ(text_of(*values, "train.epochs"), "{ \"3\" }");
  EXPECT_EQ(values->find("train.epochs")->second.origin, "job.yaml:3");
}

TEST(JobFile, APlainValueGivenToAGroupSetsItsName) {
  const auto values =
      parse_job_yaml("model: cnn\noptimizer: sgd\nschedule: cosine\ndata: {train: d}\n", "j");
  ASSERT_TRUE(values.is_ok());
  EXPECT_EQ(text_of(*values, "model.name"), "{ \"cnn\" }");
  EXPECT_EQ(text_of(*values, "optimizer.name"), "{ \"sgd\" }");
  EXPECT_EQ(text_of(*values, "schedule.name"), "{ \"cosine\" }");
  EXPECT_EQ(text_of(*values, "data.train.path"), "{ \"d\" }");
}

TEST(JobFile, AnUnknownKeyNamesFileLineAndTheNearestKnownKey) {
  EXPECT_EQ(error_of("job: x\ntrain:\n  globl_batch: 3\n"),
            "job.yaml:3: unknown key train.globl_batch; did you mean train.global_batch?");
}

TEST(JobFile, ASyntaxErrorNamesLineAndColumn) {
  EXPECT_THAT(error_of("job: x\nseed: [1,\n"),
              AllOf(Names("job.yaml:3:1"), Says("not valid YAML")));
  EXPECT_THAT(error_of("a: b: c\n"), AllOf(Names("job.yaml:1:5"), Says("not valid YAML")));
}

TEST(JobFile, AMissingColonIsReportedOnItsOwnLine) {
  EXPECT_THAT(error_of("job: x\nmodel cnn\ntrain: {epochs: 1}\n"),
              AllOf(Names("job.yaml:2:"), Names("model"), Advises("model: cnn")));
  EXPECT_THAT(error_of("job: x\nmodel cnn\n"), AllOf(Names("job.yaml:2:"), Advises("model: cnn")));
  EXPECT_THAT(error_of("job: x\ntrain:\n  slots 4\n  epochs: 3\n"),
              AllOf(Names("job.yaml:3:"), Advises("slots: 4")));
  EXPECT_THAT(error_of("job: x\ntrain:\n  epochs: 3\n  slots 4\n"),
              AllOf(Names("job.yaml:4:"), Advises("slots: 4")));
  EXPECT_THAT(error_of("job: x\nmodel\n  name: cnn\n"),
              AllOf(Names("job.yaml:2:"), Advises("model:")));
  // Valid YAML, which says something else.
  EXPECT_THAT(error_of("job: x\ntrain:\n  epochs 3\n"),
              AllOf(Names("job.yaml:3:"), Advises("epochs: 3")));
  EXPECT_THAT(error_of("job: x\nmodel:\n  name cnn\n"),
              AllOf(Names("job.yaml:3:"), Advises("name: cnn")));
}

TEST(JobFile, AValueThatIsAWordOfAKeyIsAValue) {
  const auto values = parse_job_yaml("job: train\ndata: {train: data, eval: path}\n", "job.yaml");
  ASSERT_TRUE(values.is_ok()) << values.status().message();
  EXPECT_EQ(text_of(*values, "data.train.path"), "{ \"data\" }");
  EXPECT_THAT(error_of("train:\n  path:\n"), AllOf(Names("train.path"), Says("unknown key")));
}

TEST(JobFile, AMissingBlankAfterAColonIsReportedOnItsOwnLine) {
  EXPECT_THAT(error_of("job: x\ntrain:\n  epochs:3\n"),
              AllOf(Names("job.yaml:3:"), Advises("epochs: 3")));
  EXPECT_THAT(error_of("job: x\ntrain:\n  slots:4\n  epochs: 3\n"),
              AllOf(Names("job.yaml:3:"), Advises("slots: 4")));
}

TEST(JobFile, ATabIsNamed) {
  EXPECT_THAT(error_of("job: x\ntrain:\n\tepochs: 3\n\tslots: 4\n"),
              AllOf(Names("job.yaml:3:"), Says("tab"), Advises("blanks")));
  EXPECT_THAT(error_of("job: x\ntrain:\n  slots: 4\n \tepochs: 3\n"),
              AllOf(Names("job.yaml:4:"), Says("tab")));
}

TEST(JobFile, AKeyGivenTwiceIsRefusedWithBothLines) {
  EXPECT_EQ(error_of("seed: 1\njob: x\nseed: 2\n"),
            "job.yaml:3: seed is given twice, first at job.yaml:1");
}

TEST(JobFile, AMapOrAListWhereOneValueBelongsIsRefused) {
  EXPECT_EQ(error_of("seed: {a: 1}\n"), "job.yaml:1: seed must be one value, not a map");
  EXPECT_EQ(error_of("seed: [1]\n"), "job.yaml:1: seed must be one value, not a list");
  EXPECT_EQ(error_of("train: 5\n"),
            "job.yaml:1: train must hold keys of its own, like train.global_batch");
  EXPECT_EQ(error_of("model: [cnn]\n"),
            "job.yaml:1: model must hold keys of its own, like model.name");
}

TEST(JobFile, AKeyWithoutAValueIsRefused) {
  EXPECT_EQ(error_of("seed:\n"), "job.yaml:1: seed has no value");
}

TEST(JobFile, WhatIsNotAMapIsNoJobFile) {
  for (const char* text : {"", "just words", "- a\n- b\n", "# only a comment\n"})
    EXPECT_THAT(error_of(text), Advises("map of keys")) << text;
  EXPECT_THAT(error_of("seed: 1\n---\nseed: 2\n"), Says("more than one"));
  EXPECT_THAT(error_of(std::string("seed: 1\0", 8)), Says("not a text"));
}

TEST(JobFile, AHugeFileIsRefusedBeforeItIsParsed) {
  EXPECT_THAT(error_of(std::string(limits::kJobFileBytes + 1, ' ')), HasSubstr("limit"));
}

TEST(JobFile, AnAliasBombCostsNothing) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + ", " + last +
            ", " + last + "]\n";
  }
  EXPECT_THAT(error_of(bomb), AllOf(Names("a0"), Says("unknown key")));
  EXPECT_THAT(error_of("data: {transforms: &t [*t]}\n"), HasSubstr("job.yaml"));
}

TEST(JobFile, BracketsThatCloseNothingEndInAnErrorNotInALoop) {
  // Found by fuzzing: yaml-cpp 0.7 never stops asking for one more document.
  EXPECT_THAT(error_of(", epo: 128, epochs: 1}}\nizer: a epo\n"), HasSubstr("job.yaml"));
}

TEST(JobFile, DeepNestingIsASyntaxErrorNotACrash) {
  EXPECT_THAT(error_of("seed: " + std::string(100'000, '[')), HasSubstr("job.yaml"));
}

TEST(JobOverrides, AValueIsTextSoThatPathsNeedNoQuoting) {
  const std::vector<std::string> args = {"data.train.path=/a b/#c: [d", "optimizer.lr=1e-3"};
  const auto values = parse_job_overrides(args);
  ASSERT_TRUE(values.is_ok());
  EXPECT_EQ(values->find("data.train.path")->second.items[0], "/a b/#c: [d");
}

TEST(JobOverrides, ListsAndGroupsAreYaml) {
  const std::vector<std::string> args = {"data.transforms=[]", "optimizer={name: sgd, lr: 0.1}",
                                         "model=mlp"};
  const auto values = parse_job_overrides(args);
  ASSERT_TRUE(values.is_ok()) << values.status().message();
  EXPECT_TRUE(values->find("data.transforms")->second.items.empty());
  EXPECT_EQ(text_of(*values, "optimizer.name"), "{ \"sgd\" }");
  EXPECT_EQ(text_of(*values, "model.name"), "{ \"mlp\" }");
}

TEST(JobOverrides, AnUnknownKeyOrNoOverrideAtAllIsRefused) {
  const std::vector<std::string> unknown = {"train.epoch=3"};
  EXPECT_EQ(parse_job_overrides(unknown).status().message(),
            "command line: unknown key train.epoch; did you mean train.epochs?");
  const std::vector<std::string> word = {"epochs"};
  EXPECT_THAT(parse_job_overrides(word).status().message(), HasSubstr("write key=value"));
}

TEST(JobEnvironment, DoubleUnderscoresAreLevelsAndOthersAreLeftAlone) {
  const std::vector<std::string> environment = {"PATH=/bin", "LOCKSTEP_TRAIN__MAX_STEPS=7",
                                                "LOCKSTEP_SEED=9", "LOCKSTEP_RANK=1"};
  const auto values = parse_job_environment(environment);
  ASSERT_TRUE(values.is_ok());
  EXPECT_EQ(values->size(), 2u);
  EXPECT_EQ(text_of(*values, "train.max_steps"), "{ \"7\" }");
  EXPECT_EQ(text_of(*values, "seed"), "{ \"9\" }");
}

TEST(JobEnvironment, AMistypedVariableIsNamed) {
  const std::vector<std::string> environment = {"LOCKSTEP_TRAIN__MAX_STEP=7"};
  EXPECT_THAT(parse_job_environment(environment).status().message(),
              AllOf(HasSubstr("LOCKSTEP_TRAIN__MAX_STEP: "), HasSubstr("train.max_steps?")));
}

}  // namespace
}  // namespace lockstep
