#include "deploy/cli/job/job_resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/run/job/bucket_size.h"
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

TEST(JobResolve, WhatOthersCouldReachIsRefusedUntilItIsProtected) {
  EXPECT_THAT(error_of({"metrics.listen=0.0.0.0:9400"}, Code::kConfig),
              Advises("comm.tls", "token"));
  EXPECT_EQ(resolved({"metrics.listen=network:9400", "comm.tls=/certs"}).metrics().listen(),
            "network:9400");
  for (const char* backend : {"comm.backend=nccl", "comm.backend=mpi"})
    EXPECT_THAT(error_of({"comm.network=10.0.0.0/8", backend}, Code::kConfig),
                Says("authenticates", "encrypts"));
  EXPECT_THAT(
      error_of({"comm.network=10.0.0.0/8", "comm.backend=nccl", "comm.trusted_network=true"},
               Code::kConfig),
      ::testing::Not(HasSubstr("encrypts")));  // what is left to say is about GPUs
  EXPECT_THAT(error_of({"comm.network=10.0.0.0/8", "comm.nccl_hca=mlx5_0"}, Code::kConfig),
              AllOf(Names("comm.nccl_hca"), Advises("comm.trusted_network")));
}

TEST(JobResolve, CertificatesLieWhereTheJobSays) {
  EXPECT_EQ(resolved({"comm.tls=certs"}).comm().tls(), "/home/me/certs");
  EXPECT_EQ(resolved({}).comm().tls(), "");
  EXPECT_EQ(resolved({"metrics.hosts=[a.example, b]"}).metrics().hosts_size(), 2);
  EXPECT_EQ(resolved({}).metrics().hosts_size(), 0);
}

TEST(JobResolve, ANetworkIsLoopbackAPrefixOrAnInterface) {
  EXPECT_THAT(error_of({"comm.network=10.0.0.3"}), Names("comm.network is 10.0.0.3"));
  for (const char* network : {"loopback", "10.2.0.0/16", "fd00:1::/64", "eth0"})
    EXPECT_EQ(resolved({"comm.network=" + std::string(network)}).comm().network(), network);
}

TEST(JobResolve, TheCoordinatorIsAdvertisedByANameThatOthersCanReach) {
  EXPECT_EQ(resolved({"comm.network=eth0", "comm.advertise=shoes-0.shoes"}).comm().advertise(),
            "shoes-0.shoes");
  EXPECT_THAT(error_of({"comm.advertise=shoes-0.shoes"}), HasSubstr("comm.network"));
  for (const char* odd : {"shoes-0.shoes:4100", "10.2.0.7", "[fd00::1]", "a b", "localhost"})
    EXPECT_THAT(error_of({"comm.network=eth0", "comm.advertise=" + std::string(odd)}),
                Says("without a port"))
        << odd;
}

TEST(JobResolve, CudaWithoutAGpuIsRefusedWithTheReason) {
  EXPECT_THAT(error_of({"cluster.device=cuda"}, Code::kConfig),
              AllOf(Names("cluster.device is cuda", "command line"), Says("no GPU"),
                    Advises("cpu", "auto")));
}

TEST(JobResolve, AutoTakesTheGpusThatAreThereAndAWorkerForEach) {
  JobContext with_gpus = context();
  with_gpus.count_gpus = [] { return Result<uint32_t>(3); };
  auto job = resolve_job(values_of(kMinimal), with_gpus);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->cluster().device(), "cuda");
  EXPECT_EQ(job->cluster().workers(), 3u);
  EXPECT_EQ(job->train().slots(), 3u);
  job = resolve_job(values_of(kMinimal, {"cluster.device=cpu"}), with_gpus);
  EXPECT_EQ(job->cluster().device(), "cpu");
  EXPECT_EQ(job->cluster().workers(), 2u);
}

TEST(JobResolve, NcclIsForWorkersWithAGpuEach) {
  JobContext with_gpus = context();
  with_gpus.count_gpus = [] { return Result<uint32_t>(2u); };
  const auto backend = [&](const std::vector<std::string>& overrides) {
    const auto job = resolve_job(values_of(kMinimal, overrides), with_gpus);
    return job.is_ok() ? job->comm().backend() : job.status().message();
  };
  EXPECT_EQ(backend({"cluster.workers=2"}), "auto") << "the workers try NCCL";
  EXPECT_EQ(backend({"cluster.workers=1"}), "host");
  EXPECT_EQ(backend({"cluster.workers=3"}), "host") << "two of them share a GPU";
  EXPECT_EQ(backend({"cluster.workers=2", "comm.network=10.0.0.0/8"}), "host");
  EXPECT_EQ(backend({"cluster.workers=2", "comm.network=10.0.0.0/8", "comm.trusted_network=true"}),
            "auto");
  EXPECT_EQ(backend({"cluster.workers=2", "cluster.device=cpu"}), "host");
  EXPECT_EQ(backend({"cluster.workers=2", "comm.backend=nccl"}), "nccl");
  EXPECT_EQ(backend({"cluster.workers=1", "comm.backend=nccl"}), "nccl");
  EXPECT_THAT(backend({"cluster.workers=3", "comm.backend=nccl"}),
              AllOf(Says("2 for 3 workers"), Advises("host", "auto")));
  // mpirun with CUDA_VISIBLE_DEVICES for each rank, or several nodes: the coordinator compares.
  with_gpus.sees_gpus_of_all_workers = false;
  EXPECT_EQ(backend({"cluster.workers=3", "comm.backend=nccl"}), "nccl");
  EXPECT_EQ(backend({"cluster.workers=3"}), "auto");
  EXPECT_THAT(backend({"cluster.device=cpu", "comm.backend=nccl"}),
              AllOf(Names("cluster.device"), Says("GPUs")));
}

TEST(JobResolve, BucketsThatTheJobLeavesOpenAreAsLargeAsFitsWhoSums) {
  wire::CommSpec comm;
  EXPECT_EQ(bucket_bytes(comm, /*nccl_sums=*/true), uint64_t{32} << 20);
  EXPECT_EQ(bucket_bytes(comm, /*nccl_sums=*/false), uint64_t{4} << 20);
  comm.set_bucket_mb(0.5);
  for (const bool nccl_sums : {false, true})
    EXPECT_EQ(bucket_bytes(comm, nccl_sums), uint64_t{1} << 19);
}

TEST(JobResolve, NcclHasLargerBucketsUnlessTheJobSaysOtherwise) {
  JobContext with_gpus = context();
  with_gpus.count_gpus = [] { return Result<uint32_t>(2u); };
  const auto bucket_mb = [&](const std::vector<std::string>& overrides) {
    const auto job = resolve_job(values_of(kMinimal, overrides), with_gpus);
    EXPECT_TRUE(job.is_ok()) << job.status().message();
    return job.is_ok() ? job->comm().bucket_mb() : 0;
  };
  EXPECT_EQ(bucket_mb({"comm.backend=host"}), 4);
  EXPECT_EQ(bucket_mb({"comm.backend=nccl"}), 32);
  EXPECT_EQ(bucket_mb({"comm.backend=auto"}), 0) << "the workers find out who sums";
  EXPECT_EQ(bucket_mb({"comm.backend=auto", "cluster.device=cpu"}), 4);
  EXPECT_EQ(bucket_mb({"comm.backend=auto", "comm.bucket_mb=4"}), 4);
  EXPECT_EQ(bucket_mb({"comm.backend=nccl", "comm.bucket_mb=4"}), 4);
  // A resume keeps what the run has.
  const auto stored = resolve_job(values_of(kMinimal, {"comm.bucket_mb=8"}), with_gpus);
  ASSERT_TRUE(stored.is_ok());
  with_gpus.stored = &*stored;
  EXPECT_EQ(bucket_mb({"comm.backend=nccl"}), 8);
  with_gpus.stored = nullptr;
  const auto undecided = resolve_job(values_of(kMinimal, {}), with_gpus);
  ASSERT_TRUE(undecided.is_ok());
  with_gpus.stored = &*undecided;
  EXPECT_EQ(bucket_mb({}), 0);
  EXPECT_EQ(bucket_mb({"comm.backend=host"}), 4) << "now it is decided";
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
