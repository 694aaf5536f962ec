#include "deploy/cli/job_resolve.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "coordinator/identity.h"
#include "deploy/cli/job_print.h"
#include "deploy/cli/job_schema.h"
#include "deploy/cli/same_run.h"

namespace lockstep {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kMinimal[] =
    "job: tiny\nmodel: {name: cnn}\ndata: {train: {path: d}}\n"
    "train: {global_batch: 128, epochs: 2}\noptimizer: adamw\n";

JobContext context() {
  JobContext context;
  context.file_directory = "/jobs";
  context.working_directory = "/home/me";
  context.cores = 2;
  context.has_eval_files = [](const std::string& directory) { return directory == "/jobs/d"; };
  return context;
}

JobValues values_of(const std::string& yaml, const std::vector<std::string>& overrides = {},
                    const std::vector<std::string>& environment = {}) {
  auto values = parse_job_yaml(yaml, "job.yaml");
  EXPECT_TRUE(values.is_ok()) << values.status().message();
  overlay(*values, *parse_job_environment(environment));
  overlay(*values, *parse_job_overrides(overrides));
  return *values;
}

wire::JobSpec resolved(const std::vector<std::string>& overrides = {},
                       const std::vector<std::string>& environment = {}) {
  const auto job = resolve_job(values_of(kMinimal, overrides, environment), context());
  EXPECT_TRUE(job.is_ok()) << job.status().message();
  return *job;
}

std::string error_of(const std::vector<std::string>& overrides, Code code = Code::kUsage) {
  const auto job = resolve_job(values_of(kMinimal, overrides), context());
  EXPECT_EQ(job.status().code(), code);
  return job.status().message();
}

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

constexpr char kGpt2[] =
    "job: text\nmodel: {name: gpt2}\ndata: {train: {path: a.txt}}\n"
    "train: {global_batch: 8, epochs: 2}\n";

Result<wire::JobSpec> resolve_gpt2_job(const std::vector<std::string>& overrides = {}) {
  JobContext tokens = context();
  tokens.detect_format = [](const std::string& path) {
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
  EXPECT_THAT(message({"model.n_head=5"}), HasSubstr("multiple of the number of heads"));
  EXPECT_THAT(message({"data.train.path=images"}), HasSubstr("learns from tokens or text"));
  EXPECT_THAT(message({"data.transforms=normalize"}), HasSubstr("for images"));
  EXPECT_THAT(message({"model.size=d13"}), HasSubstr("did you mean"));
  EXPECT_THAT(error_of({"data.train.format=text"}), HasSubstr("only gpt2 learns from"));
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

TEST(JobResolve, AMissingRequiredKeyIsNamedWithItsMeaning) {
  const auto job = resolve_job(values_of("job: x\n"), context());
  EXPECT_EQ(job.status().code(), Code::kUsage);
  EXPECT_THAT(job.status().message(), HasSubstr("model.name is missing"));
}

TEST(JobResolve, MoreSlotsThanSamplesAreRefusedWithBothPlaces) {
  EXPECT_THAT(error_of({"train.slots=400"}),
              AllOf(HasSubstr("train.slots is 400 (command line)"),
                    HasSubstr("train.global_batch is 128 (job.yaml:4)")));
}

TEST(JobResolve, MoreWorkersThanSlotsAreRefused) {
  EXPECT_THAT(error_of({"train.slots=2", "cluster.workers=3"}), HasSubstr("at most 2 workers"));
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
              AllOf(HasSubstr("train.accumulate is 3 (command line)"),
                    HasSubstr("train.slots is 4 (command line)"), HasSubstr("leave one")));
  EXPECT_THAT(error_of({"train.accumulate=65536", "cluster.workers=2"}),
              HasSubstr("131072 slots, more than 65536"));
  // As it stands in the resolved file.
  EXPECT_EQ(resolved({"train.accumulate=3", "cluster.workers=2", "train.slots=6"}).train().slots(),
            6u);
}

TEST(JobResume, AccumulateMeansTheWorkersOfTheFirstStart) {
  const wire::JobSpec stored = resolved({"train.accumulate=2", "cluster.workers=2"});
  JobContext resume = context();
  resume.stored = &stored;
  resume.check_same_run = check_same_run;
  const auto same =
      resolve_job(values_of("train: {accumulate: 2, slots: 4}\ncluster: {workers: 3}\n"), resume);
  ASSERT_TRUE(same.is_ok()) << same.status().message();
  EXPECT_EQ(same->train().slots(), 4u);
  const auto other = resolve_job(values_of("train: {accumulate: 3}\n"), resume);
  EXPECT_THAT(other.status().message(),
              HasSubstr("train.accumulate is 2 in this run and was asked to be 3"));
}

TEST(JobResolve, WhatIsNoRunOfStepsCannotBeTraced) {
  EXPECT_EQ(resolved({"train.trace=10:20"}).train().trace(), "10:20");
  for (const char* text : {"10", "20:10", "10:10", "a:b", "10:20:30", ":"})
    EXPECT_THAT(error_of({std::string("train.trace=") + text}), HasSubstr("as in 10:20")) << text;
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
  EXPECT_THAT(error_of({"cluster.workers=2", "cluster.min_workers=3"}),
              AllOf(HasSubstr("cluster.min_workers is 3 (command line)"),
                    HasSubstr("cluster.workers is 2")));
}

TEST(JobResolve, ARunWithoutAnEndIsRefused) {
  EXPECT_THAT(error_of({"train.epochs=0"}), HasSubstr("train.epochs or train.max_steps"));
}

TEST(JobResolve, ASpikeThatAnyLossCouldBeIsRefused) {
  EXPECT_THAT(error_of({"train.loss_spike=1"}), HasSubstr("a number above 1"));
}

TEST(JobResolve, AWrongValueNamesWhereItWasGiven) {
  EXPECT_THAT(error_of({"optimizer.lr=nan"}), HasSubstr("command line: optimizer.lr"));
}

TEST(JobResolve, AnImpossibleListenAddressOrJobNameIsRefused) {
  EXPECT_THAT(error_of({"metrics.listen=9400"}), HasSubstr("host:port"));
  EXPECT_THAT(error_of({"metrics.listen=127.0.0.1:99999"}), HasSubstr("host:port"));
  EXPECT_THAT(error_of({"job=../x"}), HasSubstr("letters, digits"));
}

TEST(JobResolve, CudaWithoutAGpuIsRefusedWithTheReason) {
  EXPECT_THAT(error_of({"cluster.device=cuda"}, Code::kConfig),
              AllOf(HasSubstr("cluster.device is cuda (command line)"),
                    HasSubstr("no GPU was looked for"), HasSubstr("take cpu or auto")));
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
  EXPECT_EQ(backend({"cluster.workers=2"}), "host");
  EXPECT_EQ(backend({"cluster.workers=2", "comm.backend=nccl"}), "nccl");
  EXPECT_EQ(backend({"cluster.workers=1", "comm.backend=nccl"}), "nccl");
  EXPECT_THAT(backend({"cluster.workers=3", "comm.backend=nccl"}),
              HasSubstr("there are 2 for 3 workers; take host or auto"));
  EXPECT_THAT(backend({"cluster.device=cpu", "comm.backend=nccl"}),
              HasSubstr("it sums between GPUs, and cluster.device"));
}

TEST(JobResolve, NothingStartsWorkersIntoAnMpiWorldYet) {
  EXPECT_THAT(error_of({"comm.backend=mpi"}, Code::kConfig), HasSubstr("take host or auto"));
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

TEST(JobResume, AResumeThatAsksForAnAutomaticBatchHasTheResolvedOne) {
  const wire::JobSpec stored = resolved({"train.global_batch=256", "train.slots=4"});
  JobContext resume = context();
  resume.stored = &stored;
  const auto job = resolve_job(values_of("train: {global_batch: auto}\n"), resume);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->train().global_batch(), 256u);
}

TEST(JobResume, WhatIsNotSaidStaysAsTheRunHasIt) {
  const wire::JobSpec stored = resolved({"model.dropout=0.25", "train.slots=4"});
  JobContext resume = context();
  resume.stored = &stored;
  resume.check_same_run = check_same_run;
  const auto job =
      resolve_job(values_of("train: {max_steps: 9, slots: 0}\n", {"cluster.workers=3"}), resume);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->model().dropout(), 0.25);
  EXPECT_EQ(job->train().max_steps(), 9u);
  EXPECT_EQ(job->cluster().workers(), 3u);
  EXPECT_EQ(job->train().slots(), 4u);
  EXPECT_TRUE(check_same_run(stored, *job).is_ok());
}

TEST(JobResume, AnotherIdentityIsRefusedWithBothValues) {
  const wire::JobSpec stored = resolved();
  for (const auto& [override, told] : std::map<std::string, std::string>{
           {"seed=7", "seed is 1 in this run and was asked to be 7"},
           {"train.global_batch=64", "train.global_batch is 128 in this run"},
           {"model.name=mlp", "model.name is cnn in this run and was asked to be mlp"},
           {"data.transforms=[]", "data.transforms"},
           {"optimizer.beta1=0.8", "optimizer.beta1 is 0.9 in this run"},
           {"comm.numerics=fast", "comm.numerics is exact in this run"}}) {
    const Status status = check_same_run(stored, resolved({override}));
    EXPECT_EQ(status.code(), Code::kUsage) << override;
    EXPECT_THAT(status.message(), HasSubstr(told));
  }
}

TEST(JobResume, OtherDataAreRefusedWithBothFingerprints) {
  wire::DataFacts stored;
  stored.set_train_fingerprint("aaaa");
  wire::DataFacts found = stored;
  EXPECT_TRUE(check_same_data(stored, found).is_ok());
  found.set_train_fingerprint("bbbb");
  EXPECT_THAT(check_same_data(stored, found).message(),
              AllOf(HasSubstr("fingerprint"), HasSubstr("aaaa"), HasSubstr("bbbb")));
}

constexpr char kScript[] =
    "job: own\nmodel: {name: torchscript, path: m.pt}\ndata: {train: {path: d}}\n"
    "train: {global_batch: 128, epochs: 2}\n";

JobContext file_context(const std::string& format) {
  JobContext c = context();
  c.detect_format = [format](auto&) { return Result<std::string>(format); };
  c.hash_model_file = [](const std::string& path) {
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
              AllOf(HasSubstr("model.block"), HasSubstr("how many of them make a sequence")));
}

TEST(JobModelFile, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [](const std::vector<std::string>& overrides) {
    const auto job = resolve_job(values_of(kScript, overrides), file_context("idx"));
    EXPECT_EQ(job.status().code(), Code::kUsage);
    return job.status().message();
  };
  EXPECT_THAT(refused({"model.path="}), HasSubstr("name the model's file"));
  EXPECT_THAT(refused({"model.dropout=0.5"}), HasSubstr("that is for built-in models"));
  EXPECT_THAT(refused({"model.batch_norm=true"}), HasSubstr("that is for built-in models"));
  EXPECT_THAT(refused({"model.block=16"}), HasSubstr("have no tokens"));
  EXPECT_THAT(refused({"data.eval.path=d", "data.eval.format=text"}), HasSubstr("both tokens"));
  EXPECT_THAT(refused({"model.name=mlp"}), HasSubstr("belongs to model.name torchscript"));
  EXPECT_THAT(refused({"model.name=plugins"}), HasSubstr("plugin"));
  EXPECT_THAT(refused({"model.sha256=bb22"}), AllOf(HasSubstr("/jobs/m.pt"), HasSubstr("changed")));
  const auto nowhere = resolve_job(values_of(kScript, {"model.path=x"}), file_context("idx"));
  EXPECT_EQ(nowhere.status().code(), Code::kNoInput);
}

TEST(JobModelFile, AResumeTakesTheSameContentFromWhereverItLies) {
  const auto stored = resolve_job(values_of(kScript), file_context("idx"));
  JobContext resume = file_context("idx");
  resume.stored = &*stored;
  resume.check_same_run = check_same_run;
  EXPECT_TRUE(resolve_job(values_of(kScript, {"model.path=/moved/m.pt"}), resume).is_ok());
  resume.hash_model_file = [](auto&) { return Result<std::string>("cc33"); };
  const auto changed = resolve_job(values_of(kScript), resume);
  EXPECT_EQ(changed.status().code(), Code::kUsage);
  EXPECT_THAT(changed.status().message(), AllOf(HasSubstr("aa11"), HasSubstr("cc33")));
}

TEST(JobResume, TheKeysMarkedInTheHelpAreThoseThatIdentifyARun) {
  std::set<std::string> marked;
  for (const JobKey& row : job_keys())
    if (row.identity) marked.insert(std::string(row.key));
  std::set<std::string> identifying;
  wire::JobSpec job = resolved();
  job.mutable_model()->set_sha256("0123");  // of a model from a file only
  for (const auto& entry : coordinator::identity_of(job, {}))
    if (find_job_key(entry.key) != nullptr) identifying.insert(entry.key);
  EXPECT_EQ(marked, identifying);
}

TEST(JobResume, AnotherIdentityIsToldBeforeAnythingElseThatIsWrong) {
  const wire::JobSpec stored = resolved({"train.slots=4", "cluster.workers=4"});
  JobContext resume = context();
  resume.stored = &stored;
  resume.check_same_run = check_same_run;
  const auto job = resolve_job(values_of("train: {slots: 2}\n"), resume);
  EXPECT_EQ(job.status().code(), Code::kUsage);
  EXPECT_THAT(job.status().message(),
              HasSubstr("train.slots is 4 in this run and was asked to be 2"));
}

TEST(JobResume, ARunFromBeforeTheseKeysGetsTheirDefaultsWhereZeroIsImpossible) {
  wire::JobSpec stored = resolved();
  stored.mutable_cluster()->set_min_workers(0);
  stored.mutable_cluster()->set_min_wait_s(0);
  JobContext resume = context();
  resume.stored = &stored;
  const auto job = resolve_job({}, resume);
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  EXPECT_EQ(job->cluster().min_workers(), 1u);
  EXPECT_EQ(job->cluster().min_wait_s(), 600u);
}

TEST(JobResume, LengthRateWorkersAndPlacesMayChange) {
  const wire::JobSpec stored = resolved();
  const wire::JobSpec wanted =
      resolved({"train.epochs=9", "optimizer.lr=0.5", "schedule.name=cosine",
                "data.train.path=/elsewhere", "checkpoint.keep=5"});
  EXPECT_TRUE(check_same_run(stored, wanted).is_ok());
}

TEST(JobPrint, TheResolvedJobReadsBackAsItself) {
  const wire::JobSpec job = resolved({"data.train.path=/a b/: #\"\\'\xc3\xa9", "job=null",
                                      "data.transforms=[]", "optimizer.lr=0.1234567890123"});
  const auto again = resolve_job(values_of(job_yaml(job)), context());
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_TRUE(MessageDifferencer::Equals(*again, job)) << job_yaml(job);
}

TEST(JobPrint, AnyNumbersAndNamesReadBackAsThemselves) {
  rc::check([] {
    wire::JobSpec job = resolved();
    job.mutable_optimizer()->set_lr(*rc::gen::map(
        rc::gen::positive<double>(), [](double x) { return std::isfinite(x) && x > 0 ? x : 0.5; }));
    job.set_seed(*rc::gen::inRange<uint64_t>(0, uint64_t{1} << 62));
    job.mutable_data()->mutable_eval()->set_path(
        "/" + *rc::gen::container<std::string>(rc::gen::inRange<char>(32, 127)));
    const auto values = parse_job_yaml(job_yaml(job), "again");
    RC_ASSERT(values.is_ok());
    const auto again = resolve_job(*values, context());
    RC_ASSERT(again.is_ok());
    RC_ASSERT(MessageDifferencer::Equals(*again, job));
  });
}

TEST(JobPrint, TheHelpListsEveryKey) {
  const std::string help = job_help();
  for (const JobKey& row : job_keys())
    EXPECT_THAT(help, HasSubstr("\n" + std::string(row.key) + " "));
}

}  // namespace
}  // namespace lockstep
