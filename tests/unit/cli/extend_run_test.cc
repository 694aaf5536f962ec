#include "deploy/cli/run/extend_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

constexpr uint64_t kPerEpoch = 10;

wire::JobSpec job_of(uint32_t epochs, uint64_t max_steps, const std::string& schedule) {
  wire::JobSpec job;
  job.mutable_train()->set_global_batch(10);
  job.mutable_train()->set_slots(2);
  job.mutable_train()->set_epochs(epochs);
  job.mutable_train()->set_max_steps(max_steps);
  job.mutable_optimizer()->set_lr(0.1);
  auto& spec = *job.mutable_schedule();
  spec.set_name(schedule);
  spec.set_pct_start(0.3);
  spec.set_div_factor(25);
  spec.set_final_div_factor(10000);
  return job;
}

wire::DataFacts facts() {
  wire::DataFacts facts;
  facts.set_train_samples(10 * kPerEpoch);
  return facts;
}

TEST(LongerRun, WhatEndedTheRunIsWhatTheAdviceRaises) {
  EXPECT_EQ(longer_by(job_of(3, 0, "constant"), facts()), "train.epochs=6");
  EXPECT_EQ(longer_by(job_of(0, 25, "constant"), facts()), "train.max_steps=50");
  EXPECT_EQ(what_ends(job_of(3, 0, "constant"), facts()), "train.epochs is 3");
  EXPECT_EQ(what_ends(job_of(9, 25, "constant"), facts()), "train.max_steps is 25");
}

TEST(LongerRun, BothKeysAreRaisedWhereTheOtherOneWouldEndTheRun) {
  EXPECT_EQ(longer_by(job_of(3, 25, "constant"), facts()), "train.max_steps=50 train.epochs=5");
  EXPECT_EQ(longer_by(job_of(9, 25, "constant"), facts()), "train.max_steps=50");
  EXPECT_EQ(longer_by(job_of(3, 40, "constant"), facts()), "train.epochs=6 train.max_steps=0");
}

TEST(LongerRun, AfterAScheduleThatFellTheRateDoesNotJumpUp) {
  EXPECT_THAT(longer_by(job_of(3, 0, "onecycle"), facts()),
              testing::EndsWith("schedule=constant optimizer.lr=0.01"));
  wire::JobSpec cosine = job_of(3, 0, "cosine");
  cosine.mutable_schedule()->set_min_lr(0.004);
  EXPECT_THAT(longer_by(cosine, facts()), testing::EndsWith("optimizer.lr=0.004"));
}

TEST(LongerRun, ARateThatANewLengthChangesIsTold) {
  for (const char* name : {"onecycle", "cosine", "linear"}) {
    const std::string said =
        rate_change(job_of(3, 0, name), job_of(6, 0, name), facts(), 3 * kPerEpoch);
    EXPECT_THAT(said, testing::AllOf(Names("step 31", name, "train.epochs is 6"),
                                     Advises("schedule=constant optimizer.lr=0.01")));
  }
  EXPECT_EQ(rate_change(job_of(3, 0, "constant"), job_of(6, 0, "constant"), facts(), 30), "");
  EXPECT_EQ(rate_change(job_of(3, 0, "onecycle"), job_of(3, 0, "onecycle"), facts(), 15), "");
}

}  // namespace
}  // namespace lockstep
