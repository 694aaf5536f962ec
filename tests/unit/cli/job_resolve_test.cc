#include "deploy/cli/job/job_resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deploy/cli/job/job_schema.h"
#include "tests/support/fails_with.h"
#include "tests/unit/cli/job_fixture.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::context;
using testing::error_of;
using ::testing::HasSubstr;
using testing::kMinimal;
using testing::resolved;
using testing::values_of;

TEST(JobResolve, AMinimalJobGetsSensibleDefaults) {
  const wire::JobSpec job = resolved();
  EXPECT_EQ(job.seed(), 1u);
  EXPECT_EQ(job.optimizer().lr(), 1e-3);
  EXPECT_EQ(job.optimizer().weight_decay(), 0.01);
  EXPECT_EQ(job.cluster().workers(), 2u);
  EXPECT_EQ(job.train().slots(), 2u);
  EXPECT_EQ(job.cluster().device(), "cpu");
  EXPECT_EQ(job.comm().backend(), "host");
  EXPECT_EQ(job.data().train().path(), "/jobs/d");
  EXPECT_EQ(job.data().eval().path(), "/jobs/d");
  EXPECT_EQ(job.data().transforms(0), "normalize");
  EXPECT_EQ(job.checkpoint().keep(), 2u);
}

// As a path it would make a folder called s3: or gs:.
TEST(JobResolve, WhatLockstepWritesIsNoUrl) {
  for (const char* url : {"s3://b/cache", "https://h/cache", "gs://b/cache"})
    EXPECT_THAT(error_of({std::string("data.cache_dir=") + url}),
                AllOf(HasSubstr("data.cache_dir"), HasSubstr(url), HasSubstr("path")));
  EXPECT_EQ(resolved({"data.cache_dir=s3:b"}).data().cache_dir(), "/home/me/s3:b");
}

constexpr char kGpt2[] =
    "job: text\nmodel: {name: gpt2}\ndata: {train: {path: a.txt}}\n"
    "train: {global_batch: 8, epochs: 2}\n";

Result<wire::JobSpec> resolve_gpt2_job(const std::vector<std::string>& overrides = {}) {
  JobContext tokens = context();
  tokens.detect_format = [](auto&, const std::string& path) {
    return Result<std::string>(path.ends_with(".txt") ? "text" : "idx");
  };
  return resolve_job(values_of(kGpt2, overrides), tokens);
}

TEST(JobResolve, Gpt2HasTheShapeOfItsSizeAndNoTransforms) {
  const auto job = resolve_gpt2_job();
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->model().n_layer(), 12u);
  EXPECT_EQ(job->model().n_head(), 12u);
  EXPECT_EQ(job->model().n_embd(), 768u);
  EXPECT_EQ(job->model().block(), 1024u);
  EXPECT_EQ(job->data().train().format(), "text");
  EXPECT_EQ(job->data().transforms_size(), 0);
  EXPECT_EQ(job->train().eval_batch(), 4u);
  const auto other = resolve_gpt2_job({"model.size=d48", "model.n_layer=2", "model.block=64"});
  EXPECT_EQ(other->model().n_layer(), 2u);
  EXPECT_EQ(other->model().n_embd(), 1600u);
  EXPECT_EQ(other->model().block(), 64u);
  EXPECT_EQ(resolved().model().n_layer(), 0u);  // of another model
}

TEST(JobResolve, Gpt2RefusesWhatDoesNotFitIt) {
  const auto message = [](const std::vector<std::string>& overrides) {
    const auto job = resolve_gpt2_job(overrides);
    EXPECT_EQ(job.status().code(), Code::kUsage);
    return job.status().message();
  };
  EXPECT_THAT(message({"model.n_head=5"}), Says("heads"));
  EXPECT_THAT(message({"data.train.path=images"}), AllOf(Advises("tokens"), Advises("text")));
  EXPECT_THAT(message({"data.transforms=normalize"}), HasSubstr("for images"));
  EXPECT_THAT(message({"model.size=d13"}), HasSubstr("did you mean"));
  EXPECT_THAT(error_of({"data.train.format=text"}), Advises("gpt2"));
}

TEST(JobResolve, TransformsAreLookedAtBeforeAnythingIsStarted) {
  EXPECT_THAT(error_of({"data.transforms=[flip, normalise]"}), Suggests("normalize"));
  EXPECT_THAT(error_of({"data.transforms=[normalize, flip]"}), HasSubstr("after normalize"));
}

TEST(JobResolve, TheFormatIsFoundWhicheverTheModel) {
  JobContext files = context();
  files.detect_format = [](auto&, const std::string& path) -> Result<std::string> {
    if (path.ends_with("gone")) return Status(Code::kNoInput, "data " + path + " is not there");
    if (path.ends_with("both")) return Status(Code::kUsage, path + " holds both");
    return std::string(path.ends_with("cifar") ? "cifar10" : "tokens");
  };
  const auto resolved_as = [&](const char* job, const std::string& path,
                               const std::string& format) {
    const auto found = resolve_job(
        values_of(job, {"data.train.path=" + path, "data.train.format=" + format}), files);
    return found.is_ok() ? found->data().train().format() : found.status().message();
  };
  EXPECT_EQ(resolved_as(kMinimal, "cifar", "auto"), "cifar10");
  EXPECT_THAT(resolved_as(kMinimal, "gone", "auto"), Names("gone"));
  EXPECT_THAT(resolved_as(kMinimal, "both", "auto"), HasSubstr("holds both"));
  EXPECT_THAT(resolved_as(kMinimal, "arrays", "auto"), Advises("gpt2"));
  EXPECT_EQ(resolved_as(kMinimal, "cifar", "npy_nhwc"), "npy_nhwc");
  EXPECT_EQ(resolved_as(kGpt2, "arrays", "npy"), "tokens");
  EXPECT_THAT(resolved_as(kGpt2, "cifar", "auto"), AllOf(Advises("tokens"), Advises("text")));
}

TEST(JobResolve, OneDirectoryHasOneFormat) {
  const auto formats = [](const std::vector<std::string>& overrides) {
    const wire::JobSpec job = resolved(overrides);
    return job.data().train().format() + " " + job.data().eval().format();
  };
  EXPECT_EQ(formats({"data.train.format=npy_nhwc"}), "npy_nhwc npy_nhwc");
  EXPECT_EQ(formats({"data.train.format=npy_nhwc", "data.eval.path=/other"}), "npy_nhwc idx");
  EXPECT_EQ(formats({"data.train.format=npy_nhwc", "data.eval.format=cifar10"}),
            "npy_nhwc cifar10");
}

TEST(JobResolve, SgdHasItsOwnDefaults) {
  const wire::JobSpec job = resolved({"optimizer.name=sgd"});
  EXPECT_EQ(job.optimizer().lr(), 0.1);
  EXPECT_EQ(job.optimizer().momentum(), 0.9);
  EXPECT_EQ(job.optimizer().weight_decay(), 0);
}

TEST(JobResolve, TheCommandLineWinsOverTheEnvironmentAndThatOverTheFile) {
  EXPECT_EQ(resolved().train().epochs(), 2u);
  EXPECT_EQ(resolved({}, {"LOCKSTEP_TRAIN__EPOCHS=3"}).train().epochs(), 3u);
  EXPECT_EQ(resolved({"train.epochs=4"}, {"LOCKSTEP_TRAIN__EPOCHS=3"}).train().epochs(), 4u);
}

TEST(JobResolve, PathsInTheFileAreRelativeToItAndOthersToTheShell) {
  EXPECT_EQ(resolved({"data.train.path=x/../y"}).data().train().path(), "/home/me/y");
  EXPECT_EQ(resolved({"data.train.path=/abs"}).data().train().path(), "/abs");
}

TEST(JobResolve, EvaluationCanBeTurnedOffAndIsOffWithoutItsFiles) {
  EXPECT_EQ(resolved({"data.eval.path="}).data().eval().path(), "");
  EXPECT_EQ(resolved({"data.train.path=/other"}).data().eval().path(), "");
}

TEST(JobResolve, WhoAsksForEvaluationsNeedsDataForThem) {
  EXPECT_EQ(resolved({"eval.every_steps=5"}).eval().every_steps(), 5u);
  EXPECT_EQ(resolved().eval().every_steps(), 0u);
  EXPECT_THAT(error_of({"eval.every_steps=5", "data.eval.path="}),
              AllOf(Names("eval.every_steps is 5", "command line"), Advises("data.holdout")));
  EXPECT_THAT(error_of({"checkpoint.best=loss", "data.eval.path="}),
              AllOf(Names("checkpoint.best is loss"), Advises("data.eval.path")));
  EXPECT_THAT(error_of({"train.patience=3", "data.eval.path="}),
              AllOf(Names("train.patience is 3"), Advises("data.eval.path")));
  EXPECT_TRUE(
      resolve_job(values_of(kMinimal, {"checkpoint.best=accuracy", "train.patience=3"}), context())
          .is_ok());
  EXPECT_THAT(error_of({"checkpoint.best=top5"}), Names("checkpoint.best"));
  EXPECT_THAT(error_of({"eval.every_steps=-1"}), Names("eval.every_steps"));
}

TEST(JobResolve, PruningNeedsStepsBetweenWhichItHappensWithinTheRun) {
  EXPECT_EQ(resolved({"train.prune.sparsity=0.5", "train.prune.to=9"}).train().prune().to(), 9u);
  EXPECT_THAT(error_of({"train.prune.sparsity=0.5"}), Names("train.prune.to", "train.prune.from"));
  EXPECT_THAT(error_of({"train.prune.sparsity=0.5", "train.prune.from=20", "train.prune.to=20"}),
              Names("train.prune.to is 20", "train.prune.from is 20"));
  EXPECT_THAT(error_of({"train.prune.sparsity=0.5", "train.prune.to=30", "train.max_steps=20"}),
              Names("train.prune.to is 30", "train.max_steps is 20"));
  EXPECT_THAT(error_of({"train.prune.to=30"}), Names("train.prune.sparsity"));
  EXPECT_THAT(error_of({"train.prune.sparsity=1", "train.prune.to=30"}),
              Names("train.prune.sparsity"));
  EXPECT_THAT(error_of({"train.ema=1"}), Names("train.ema"));
}

TEST(JobResolve, AHoldoutIsEvaluatedOnWhereThereAreEvaluationFilesToo) {
  const auto data = resolved({"data.holdout=0.1", "data.train.format=npy_nhwc"}).data();
  EXPECT_EQ(data.eval().path(), "/jobs/d");
  EXPECT_EQ(data.eval().format(), "npy_nhwc");
  EXPECT_EQ(resolved({"data.holdout=0.1", "data.train.path=/x"}).data().eval().path(), "/x");
}

TEST(JobResolve, AHoldoutBesideOtherEvaluationDataIsRefused) {
  EXPECT_THAT(error_of({"data.holdout=0.1", "data.eval.path=/other"}),
              AllOf(Names("data.holdout is 0.1", "command line", "data.eval.path is /other"),
                    Advises("leave one")));
  EXPECT_THAT(error_of({"data.holdout=0.1", "data.eval.path="}), Advises("leave one"));
  EXPECT_THAT(error_of({"data.holdout=0.1", "data.eval.format=cifar10"}), Advises("leave one"));
  EXPECT_THAT(error_of({"data.holdout=0.1", "data.eval.fraction=0.5"}), Advises("fewer"));
  EXPECT_THAT(error_of({"data.holdout=1"}), Says("below 1"));
  EXPECT_THAT(error_of({"data.train.fraction=0"}), Says("at most 1"));
}

TEST(JobResolve, AMissingRequiredKeyIsNamedWithItsMeaning) {
  const auto job = resolve_job(values_of("job: x\n"), context());
  EXPECT_THAT(job, FailsWith(Code::kUsage, Names("model.name"), Says("missing")));
}

TEST(JobResolve, MoreSlotsThanSamplesAreRefusedWithBothPlaces) {
  EXPECT_THAT(error_of({"train.slots=400"}),
              AllOf(Names("train.slots is 400", "command line"),
                    Names("train.global_batch is 128", "job.yaml:4")));
}

TEST(JobResolve, MoreWorkersThanSlotsAreRefused) {
  EXPECT_THAT(error_of({"train.slots=2", "cluster.workers=3"}), Advises("2 workers"));
}

TEST(JobResolve, AccumulateIsSlotsForEachWorkerOfTheFirstStart) {
  EXPECT_EQ(resolved({"train.accumulate=3", "cluster.workers=2"}).train().slots(), 6u);
  EXPECT_EQ(resolved({"train.accumulate=3"}).train().slots(), 6u);
  // Every micro-batch needs a sample.
  const wire::JobSpec small = resolved({"train.accumulate=3", "train.global_batch=5"});
  EXPECT_EQ(small.cluster().workers(), 1u);
  EXPECT_EQ(small.train().slots(), 3u);
}

TEST(JobResolve, AccumulateAndSlotsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(error_of({"train.accumulate=3", "cluster.workers=2", "train.slots=4"}),
              AllOf(Names("train.accumulate is 3", "command line"),
                    Names("train.slots is 4", "command line"), HasSubstr("leave one")));
  EXPECT_THAT(error_of({"train.accumulate=65536", "cluster.workers=2"}), Says("131072", "65536"));
  // As it stands in the resolved file.
  EXPECT_EQ(resolved({"train.accumulate=3", "cluster.workers=2", "train.slots=6"}).train().slots(),
            6u);
}

TEST(JobResolve, WhatIsNoRunOfStepsCannotBeTraced) {
  EXPECT_EQ(resolved({"train.trace=10:20"}).train().trace(), "10:20");
  for (const char* text : {"10", "20:10", "10:10", "a:b", "10:20:30", ":"})
    EXPECT_THAT(error_of({std::string("train.trace=") + text}), Advises("10:20")) << text;
}

TEST(JobResolve, ARestartingRunHasItsBudgetsAndWaits) {
  const wire::ClusterSpec cluster = resolved().cluster();
  EXPECT_EQ(cluster.min_workers(), 1u);
  EXPECT_EQ(cluster.min_wait_s(), 600u);
  EXPECT_EQ(cluster.max_crashes(), 10u);
  EXPECT_EQ(cluster.max_preemptions(), 100u);
  EXPECT_EQ(resolved({"cluster.max_crashes=0"}).cluster().max_crashes(), 0u);
}

TEST(JobResolve, FewerWorkersThanTheRunNeedsAreRefused) {
  EXPECT_THAT(
      error_of({"cluster.workers=2", "cluster.min_workers=3"}),
      AllOf(Names("cluster.min_workers is 3", "command line"), Names("cluster.workers is 2")));
}

TEST(JobResolve, ARunWithoutAnEndIsRefused) {
  EXPECT_THAT(error_of({"train.epochs=0"}), Advises("train.epochs", "train.max_steps"));
}

TEST(JobResolve, ASpikeThatAnyLossCouldBeIsRefused) {
  EXPECT_THAT(error_of({"train.loss_spike=1"}), Says("above 1"));
}

TEST(JobResolve, AWrongValueNamesWhereItWasGiven) {
  EXPECT_THAT(error_of({"optimizer.lr=nan"}), Names("command line", "optimizer.lr"));
}

TEST(JobResolve, AnImpossibleListenAddressOrJobNameIsRefused) {
  EXPECT_THAT(error_of({"metrics.listen=9400"}), HasSubstr("host:port"));
  EXPECT_THAT(error_of({"metrics.listen=127.0.0.1:99999"}), HasSubstr("host:port"));
  EXPECT_THAT(error_of({"job=../x"}), HasSubstr("letters, digits"));
}

TEST(JobResolve, DefaultWorkersNeverExceedSlotsOrBatch) {
  EXPECT_EQ(resolved({"train.slots=1"}).cluster().workers(), 1u);
  EXPECT_EQ(resolved({"train.global_batch=1"}).cluster().workers(), 1u);
}

TEST(JobResolve, AnOpenGlobalBatchLimitsNothingAndIsWrittenAsAuto) {
  const wire::JobSpec job = resolved({"train.global_batch=auto", "train.slots=4"});
  EXPECT_EQ(job.train().global_batch(), 0u);
  EXPECT_GT(job.cluster().workers(), 1u);
  EXPECT_EQ(job_value(*find_job_key("train.global_batch"), job),
            (std::vector<std::string>{"auto"}));
}

}  // namespace
}  // namespace lockstep
