// Jobs whose model is a file.
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

constexpr char kScript[] =
    "job: own\nmodel: {name: torchscript, path: m.pt}\ndata: {train: {path: d}}\n"
    "train: {global_batch: 128, epochs: 2}\n";

JobContext file_context(const std::string& format) {
  JobContext c = context();
  c.detect_format = [format](auto&, auto&) { return Result<std::string>(format); };
  c.hash_model_file = [](const std::string& path, auto&) {
    if (path == "/jobs/m.pt" || path == "/moved/m.pt") return Result<std::string>("aa11");
    return Result<std::string>(Status(Code::kNoInput, path + " is not there"));
  };
  return c;
}

TEST(JobModelFile, ItsPathIsRelativeToTheJobFileAndItsContentIsPartOfTheRun) {
  const auto job = resolve_job(values_of(kScript), file_context("idx"));
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->model().path(), "/jobs/m.pt");
  EXPECT_EQ(job->model().sha256(), "aa11");
  EXPECT_EQ(job->data().transforms_size(), 1);
  EXPECT_EQ(job->train().eval_batch(), 250u);
}

TEST(JobModelFile, TakesTokensWhereTheDataAreTokens) {
  const auto job = resolve_job(values_of(kScript, {"model.block=16"}), file_context("text"));
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->data().train().format(), "text");
  EXPECT_EQ(job->data().transforms_size(), 0);
  EXPECT_EQ(job->train().eval_batch(), 4u);
  EXPECT_THAT(resolve_job(values_of(kScript), file_context("text")).status().message(),
              AllOf(HasSubstr("model.block"), Says("sequence")));
}

TEST(JobModelFile, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [](const std::vector<std::string>& overrides) {
    const auto job = resolve_job(values_of(kScript, overrides), file_context("idx"));
    EXPECT_EQ(job.status().code(), Code::kUsage);
    return job.status().message();
  };
  EXPECT_THAT(refused({"model.path="}), Advises("model's file"));
  EXPECT_THAT(refused({"model.dropout=0.5"}), Says("built-in"));
  EXPECT_THAT(refused({"model.batch_norm=true"}), Says("built-in"));
  EXPECT_THAT(refused({"model.block=16"}), Says("no tokens"));
  EXPECT_THAT(refused({"data.eval.path=d", "data.eval.format=text"}), HasSubstr("both tokens"));
  EXPECT_THAT(refused({"model.name=mlp"}), AllOf(Names("model.name"), Advises("torchscript")));
  EXPECT_THAT(refused({"model.name=plugins"}), HasSubstr("plugin"));
  EXPECT_THAT(refused({"model.sha256=bb22"}), AllOf(HasSubstr("/jobs/m.pt"), HasSubstr("changed")));
  const auto nowhere = resolve_job(values_of(kScript, {"model.path=x"}), file_context("idx"));
  EXPECT_EQ(nowhere.status().code(), Code::kNoInput);
}

constexpr char kExported[] =
    "job: own\nmodel: {name: exported, path: m.pt, eval_path: m.eval.pt2}\n"
    "data: {train: {path: d}}\ntrain: {global_batch: 128, epochs: 2}\n";

JobContext exported_context() {
  JobContext c = file_context("idx");
  c.hash_model_file = [](const std::string& path, const ModelFileKeys& keys) {
    const std::string key = keys.path;
    if (path == "/jobs/m.pt" && key == "model.path") return Result<std::string>("aa11");
    if (path == "/jobs/m.eval.pt2" && key == "model.eval_path") return Result<std::string>("ee22");
    return Result<std::string>(Status(Code::kNoInput, key + " names " + path));
  };
  return c;
}

TEST(JobModelFile, AnEvaluationProgramIsPartOfTheRun) {
  const auto job = resolve_job(values_of(kExported), exported_context());
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->model().eval_path(), "/jobs/m.eval.pt2");
  EXPECT_EQ(job->model().eval_sha256(), "ee22");
  EXPECT_THAT(resolve_job(values_of(kExported, {"model.eval_path=x"}), exported_context()),
              FailsWith(Code::kNoInput, Names("model.eval_path names", "/x")));
  EXPECT_THAT(resolve_job(values_of(kExported, {"model.eval_sha256=bb"}), exported_context()),
              FailsWith(Code::kUsage, Names("model.eval_path", "m.eval.pt2", "ee22")));
  EXPECT_THAT(resolve_job(values_of(kExported, {"model.name=torchscript"}), exported_context()),
              FailsWith(Code::kUsage, Names("model.eval_path"), Advises("exported")));
  EXPECT_THAT(resolve_job(values_of(kScript, {"model.eval_sha256=bb", "model.name=exported"}),
                          exported_context()),
              FailsWith(Code::kUsage, Names("model.eval_sha256"), Advises("name the program")));
}

TEST(JobModelFile, AProgramForPredictionsIsThereAndBelongsToExportedModels) {
  JobContext c = exported_context();
  c.hash_model_file = [hash = c.hash_model_file](const std::string& path,
                                                 const ModelFileKeys& keys) {
    if (path == "/jobs/p.pt2" && std::string(keys.path) == "model.predict_path")
      return Result<std::string>("dd11");
    return hash(path, keys);
  };
  const auto job = resolve_job(values_of(kExported, {"model.predict_path=/jobs/p.pt2"}), c);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->model().predict_path(), "/jobs/p.pt2");
  EXPECT_THAT(resolve_job(values_of(kExported, {"model.predict_path=x"}), c),
              FailsWith(Code::kNoInput, Names("model.predict_path names", "/home/me/x")));
  EXPECT_THAT(resolve_job(values_of(kScript, {"model.predict_path=p.pt2"}), file_context("idx")),
              FailsWith(Code::kUsage, Names("model.predict_path"), Advises("exported")));
}

TEST(JobModelFile, AResumeNeedsTheSameEvaluationProgram) {
  const auto stored = resolve_job(values_of(kExported), exported_context());
  JobContext resume = exported_context();
  resume.stored = &*stored;
  resume.check_same_run = check_same_run;
  EXPECT_TRUE(resolve_job(values_of(kExported), resume).is_ok());
  resume.hash_model_file = [](auto&, const ModelFileKeys& keys) {
    return Result<std::string>(std::string(keys.path) == "model.path" ? "aa11" : "ff33");
  };
  EXPECT_THAT(resolve_job(values_of(kExported), resume),
              FailsWith(Code::kUsage, Names("ee22", "ff33", "model.eval_path")));
}

TEST(JobModelFile, AResumeTakesTheSameContentFromWhereverItLies) {
  const auto stored = resolve_job(values_of(kScript), file_context("idx"));
  JobContext resume = file_context("idx");
  resume.stored = &*stored;
  resume.check_same_run = check_same_run;
  EXPECT_TRUE(resolve_job(values_of(kScript, {"model.path=/moved/m.pt"}), resume).is_ok());
  resume.hash_model_file = [](auto&, auto&) { return Result<std::string>("cc33"); };
  const auto changed = resolve_job(values_of(kScript), resume);
  EXPECT_THAT(changed, FailsWith(Code::kUsage, HasSubstr("aa11"), HasSubstr("cc33")));
}

}  // namespace
}  // namespace lockstep
