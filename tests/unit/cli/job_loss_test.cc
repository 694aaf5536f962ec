// train.loss, and what it does not go with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/unit/cli/job_fixture.h"

namespace lockstep {
namespace {

using testing::context;
using testing::values_of;

constexpr char kTableJob[] =
    "job: table\nmodel: {name: mlp}\n"
    "data: {train: {path: d}, eval: {path: e}}\n"
    "train: {global_batch: 128, epochs: 2}\n";

Result<wire::JobSpec> table_job(const std::vector<std::string>& overrides) {
  return resolve_job(values_of(kTableJob, overrides), context());
}

TEST(JobLoss, IsCrossEntropyUnlessSomethingElseIsSaid) {
  EXPECT_EQ(table_job({})->train().loss(), "cross_entropy");
  for (const char* loss : {"bce", "mse", "l1", "huber"})
    EXPECT_EQ(table_job({std::string("train.loss=") + loss})->train().loss(), loss);
  EXPECT_THAT(table_job({"train.loss=mae"}),
              FailsWith(Code::kUsage, Names("train.loss"), Says("l1")));
}

TEST(JobLoss, WhatOnlyCrossEntropyHasIsRefusedBesideAnotherLoss) {
  struct Case {
    const char* loss;
    const char* other;
    const char* named;
  };
  for (const Case& c : {Case{"mse", "train.label_smoothing=0.1", "train.label_smoothing"},
                        Case{"bce", "data.transforms=[normalize, mixup]", "mixup"},
                        Case{"l1", "data.transforms=[normalize, cutmix=0.5]", "cutmix=0.5"},
                        Case{"huber", "checkpoint.best=accuracy", "checkpoint.best"}}) {
    SCOPED_TRACE(c.other);
    const std::string loss = std::string("train.loss=") + c.loss;
    EXPECT_THAT(table_job({loss, c.other}), FailsWith(Code::kUsage, Names("train.loss", c.named)));
    EXPECT_TRUE(table_job({c.other}).is_ok()) << table_job({c.other}).status().message();
  }
  EXPECT_TRUE(table_job({"train.loss=bce", "checkpoint.best=accuracy"}).is_ok());
  EXPECT_THAT(table_job({"train.loss=mse", "model.name=gpt2", "model.block=8",
                         "data.train.format=text", "data.eval.format=text"}),
              FailsWith(Code::kUsage, Names("train.loss", "model.name"), Advises("cross_entropy")));
}

}  // namespace
}  // namespace lockstep
