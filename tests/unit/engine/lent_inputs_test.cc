// The batch, and models from files that write to it or read it in parallel.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdlib>

#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/engine/loopback_world.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

const data::SampleShape kImages{1, 4, 4};
constexpr uint32_t kClasses = 3;

class LentBatch : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("LOCKSTEP_BROKEN"); }

  wire::ModelSpec script(const std::string& forward, std::vector<int64_t> weights = {16, 3}) {
    torch::jit::Module module("Net");
    module.register_attribute("training", c10::BoolType::get(), true);
    module.register_parameter("w", at::ones(weights).set_requires_grad(true), false);
    module.define(forward);
    module.save(path_);
    wire::ModelSpec spec;
    spec.set_name("torchscript");
    spec.set_path(path_);
    return spec;
  }
  static wire::ModelSpec plugin(const std::string& how) {
    ::setenv("LOCKSTEP_BROKEN", how.c_str(), 1);
    wire::ModelSpec spec;
    spec.set_name("plugin");
    spec.set_path(LOCKSTEP_BROKEN_PLUGIN);
    return spec;
  }

  // In either mode.
  static void expect_unchanged(const wire::ModelSpec& spec) {
    const auto model = make_model(spec, kImages, kClasses);
    ASSERT_TRUE(model.is_ok()) << model.status().message();
    const InitialTensors tensors = initial_tensors((*model)->layout());
    const ModelInputs given = sample_inputs(kImages, 5, kClasses);
    const ModelInputs before = copied(given);
    for (const bool training : {false, true}) {
      (*model)->forward(given, tensors.parameters, tensors.buffers, {.training = training});
      EXPECT_TRUE(same_bits(given.x, before.x)) << training;
      EXPECT_TRUE(same_bits(given.labels, before.labels)) << training;
    }
  }

  TemporaryDirectory dir_;
  const std::string path_ = dir_.path("net.pt");
};

TEST_F(LentBatch, StaysAsItIsWhereAModelWritesToIt) {
  expect_unchanged(
      script("def forward(self, x):\n  x.mul_(2)\n  return x.flatten(1).matmul(self.w)\n"));
  expect_unchanged(
      script("def forward(self, x, label):\n  label[label == 9] = 0\n  label += 1\n"
             "  return (x.flatten(1).matmul(self.w).sum(1) - label) ** 2\n"));
  expect_unchanged(plugin("writes to its input"));
  expect_unchanged(plugin("writes by a pointer"));
}

TEST_F(LentBatch, AModelThatWritesToItOnlyLaterIsRefused) {
  const auto model = make_model(plugin("writes later"), kImages, kClasses);
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const InitialTensors tensors = initial_tensors((*model)->layout());
  const auto forward = [&] {
    (*model)->forward(sample_inputs(kImages, 5, kClasses), tensors.parameters, tensors.buffers, {});
  };
  try {
    for (int i = 0; i < 4; ++i) forward();
    FAIL() << "the batch was changed";
  } catch (const std::exception& e) {
    EXPECT_THAT(e.what(), HasSubstr("writes to its input"));
  }
}

// Backward of w[x] adds rows of the gradient to one row, in the order of the threads that come.
TEST_F(LentBatch, SeveralThreadsAddInOneOrder) {
  const auto text = testing::make_text(128, 64);
  wire::JobSpec job = testing::small_job("torchscript");
  *job.mutable_model() = script("def forward(self, x):\n  return self.w[x]\n", {256, 256});
  job.mutable_model()->set_block(64);
  job.mutable_data()->clear_transforms();
  job.mutable_train()->set_global_batch(64);
  job.mutable_train()->set_threads_per_worker(2);
  const auto train = [&] { return testing::train(job, *text, testing::even_runs(4, 1), 4).state; };
  const std::string once = train();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(train() == once);
}

// Elements that are put twice keep one of the values, whichever comes last.
TEST_F(LentBatch, WhatSeveralThreadsCannotDoInOneOrderIsRefused) {
  const auto text = testing::make_text(32, 8);
  wire::JobSpec job = testing::small_job("torchscript");
  *job.mutable_model() =
      script("def forward(self, x):\n  w = self.w.clone().put_(x, x.float())\n  return w[x]\n",
             {256, 256});
  job.mutable_model()->set_block(8);
  job.mutable_data()->clear_transforms();
  EXPECT_TRUE(testing::make_engine(job, *text).is_ok());
  job.mutable_train()->set_threads_per_worker(2);
  EXPECT_THAT(testing::make_engine(job, *text).status(),
              FailsWith(Code::kConfig, Names("put_"), Advises("train.threads_per_worker: 1")));
}

}  // namespace
}  // namespace lockstep
