// Tests which keys may change when a run is resumed, and what keys mean that were not said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "coordinator/state/identity.h"
#include "deploy/cli/job/job_schema.h"
#include "deploy/cli/run/same_run.h"
#include "tests/support/fails_with.h"
#include "tests/unit/cli/job_fixture.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::context;
using ::testing::HasSubstr;
using testing::resolved;
using testing::values_of;

// Returns what the command line resumes with; `stored` outlives it.
JobContext resume_of(const wire::JobSpec& stored) {
  JobContext resume = context();
  resume.stored = &stored;
  resume.check_same_run = check_same_run;
  return resume;
}

TEST(JobResume, AccumulateMeansTheWorkersOfTheFirstStart) {
  const wire::JobSpec stored = resolved({"train.accumulate=2", "cluster.workers=2"});
  const JobContext resume = resume_of(stored);
  const auto same =
      resolve_job(values_of("train: {accumulate: 2, slots: 4}\ncluster: {workers: 3}\n"), resume);
  ASSERT_TRUE(same.is_ok()) << same.status().message();
  EXPECT_EQ(same->train().slots(), 4u);
  const auto other = resolve_job(values_of("train: {accumulate: 3}\n"), resume);
  EXPECT_THAT(other.status().message(),
              AllOf(Names("train.accumulate is 2"), Says("asked to be 3")));
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
  const JobContext resume = resume_of(stored);
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
  for (const auto& [override, subjects] : std::map<std::string, fails_with::Message>{
           {"seed=7", Names("seed is 1", "7")},
           {"train.global_batch=64", Names("train.global_batch is 128", "64")},
           {"model.name=mlp", Names("model.name is cnn", "mlp")},
           {"data.transforms=[]", Names("data.transforms")},
           {"optimizer.beta1=0.8", Names("optimizer.beta1 is 0.9", "0.8")},
           {"data.shuffle=block", Names("data order version is 1", "2")},
           {"data.holdout=0.1", Names("data.holdout is (not set)", "0.1")},
           {"data.train.fraction=0.5", Names("data.train.fraction is (not set)", "0.5")},
           {"comm.numerics=fast", Names("comm.numerics is exact", "fast")}})
    EXPECT_THAT(check_same_run(stored, resolved({override})), FailsWith(Code::kUsage, subjects));
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

TEST(JobResume, TheKeysMarkedInTheHelpAreThoseThatIdentifyARun) {
  std::set<std::string> marked;
  for (const JobKey& row : job_keys())
    if (row.identity) marked.insert(std::string(row.key));
  std::set<std::string> identifying;
  wire::JobSpec job = resolved();
  job.mutable_model()->set_sha256("0123");     // of a model from a file only
  job.mutable_model()->set_eval_sha256("67");  // of a model from a file only
  job.mutable_model()->set_init_sha256("89");  // where weights were given
  job.mutable_model()->add_init_skip("fc.*");
  job.mutable_train()->set_label_smoothing(0.1);  // where there is any
  job.mutable_train()->set_ema(0.9);
  wire::PruneSpec& prune = *job.mutable_train()->mutable_prune();
  prune.set_sparsity(0.5);
  prune.set_from(1);
  prune.set_to(2);
  prune.set_every(1);
  job.mutable_train()->set_loss("mse");            // older runs have another
  job.mutable_data()->set_tokenizer_sha256("45");  // older runs have another
  job.mutable_data()->set_documents("pack");       // where they are not stream
  job.mutable_data()->set_document_end("50256");
  job.mutable_data()->set_length_classes(2);
  job.mutable_data()->set_shuffle("block");
  job.mutable_data()->set_label("species");  // where they are named
  job.mutable_data()->set_input("pixels");
  job.mutable_data()->add_inputs("image");
  job.mutable_data()->add_targets("mask");
  job.mutable_data()->set_weight("importance");
  // Where they select anything.
  job.mutable_data()->set_holdout(0.1);
  job.mutable_data()->set_split_seed(1);
  job.mutable_data()->mutable_train()->set_fraction(0.1);
  job.mutable_data()->mutable_eval()->set_fraction(0.1);
  job.mutable_data()->add_mix();
  job.mutable_optimizer()->add_groups();
  job.mutable_optimizer()->set_adjust_lr("original");
  for (const auto& entry : coordinator::identity_of(job, {}))
    if (const JobKey* row = find_job_key(entry.key); row != nullptr)
      identifying.insert(std::string(row->key));
  EXPECT_EQ(marked, identifying);
}

TEST(JobResume, AnotherIdentityIsToldBeforeAnythingElseThatIsWrong) {
  const wire::JobSpec stored = resolved({"train.slots=4", "cluster.workers=4"});
  const JobContext resume = resume_of(stored);
  const auto job = resolve_job(values_of("train: {slots: 2}\n"), resume);
  EXPECT_THAT(job, FailsWith(Code::kUsage, Names("train.slots is 4"), Says("asked to be 2")));
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

}  // namespace
}  // namespace lockstep
