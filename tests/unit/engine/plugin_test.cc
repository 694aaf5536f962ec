// A plug-in as a model: the promises of the built-in ones, and what is refused.
#include <ATen/ops/empty.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <exception>
#include <vector>

#include "tests/support/fails_with.h"
#include "tests/unit/engine/loopback_world.h"
#include "worker/model/model_file.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::even_runs;
using ::testing::HasSubstr;
using testing::LoopbackWorld;

wire::JobSpec job_of(const std::string& path) {
  wire::JobSpec job = testing::small_job("plugin");
  job.mutable_model()->set_path(path);
  job.mutable_model()->set_sha256(read_model_file(path)->sha256);
  return job;
}

TEST(Plugin, SameBitsForAnyNumberOfRanksWithDropoutAndBatchNorm) {
  const auto dataset = testing::make_patterns(83);  // the last step is short
  wire::JobSpec job = job_of(LOCKSTEP_SMALL_NET);
  job.mutable_train()->set_global_batch(24);
  const auto train = [&](uint32_t ranks, uint64_t bucket_bytes) {
    LoopbackWorld world(job, *dataset, even_runs(4, ranks), bucket_bytes);
    world.begin_generation(8);
    return world.train_to(8);
  };
  const auto one = train(1, 0);
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const uint32_t ranks : {2u, 4u}) {
    const auto other = train(ranks, 4096);
    EXPECT_EQ(other.losses, one.losses) << ranks << " ranks";
    EXPECT_TRUE(other.state == one.state) << ranks << " ranks";
  }
}

TEST(Plugin, ABatchNormOverOneValueIsRefusedWithItsName) {
  const auto dataset = testing::make_patterns(40);
  wire::JobSpec job = job_of(LOCKSTEP_SMALL_NET);
  job.mutable_train()->set_global_batch(4);
  const Status status = testing::make_engine(job, *dataset).status();
  EXPECT_THAT(status,
              FailsWith(Code::kConfig, HasSubstr(LOCKSTEP_SMALL_NET), HasSubstr("one value")));
}

TEST(Plugin, RefusesWhatItDoesNotTake) {
  const Status status =
      make_model(job_of(LOCKSTEP_SMALL_NET).model(), {.tokens = 8, .token_bytes = 1}, 256).status();
  EXPECT_THAT(status, FailsWith(Code::kConfig, HasSubstr(LOCKSTEP_SMALL_NET), Says("images")));
}

class BrokenPlugin : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("LOCKSTEP_BROKEN"); }

  static Status status(const std::string& how, const std::string& path = LOCKSTEP_BROKEN_PLUGIN) {
    ::setenv("LOCKSTEP_BROKEN", how.c_str(), 1);
    return make_model(job_of(path).model(), {1, 4, 4}, 3).status();
  }
  static void expect(const std::string& how, const std::string& words,
                     const std::string& path = LOCKSTEP_BROKEN_PLUGIN) {
    const Status refused = status(how, path);
    EXPECT_EQ(refused.code(), Code::kConfig) << how;
    EXPECT_THAT(refused.message(), AllOf(HasSubstr(path), HasSubstr(words)));
    EXPECT_THAT(refused.message(), ::testing::Not(HasSubstr("\n")));
  }
};

TEST_F(BrokenPlugin, WorksWhereNothingIsBroken) {
  const Status made = status("");
  EXPECT_TRUE(made.is_ok()) << made.message();
}

// On `meta`, which has shapes and no values.
TEST_F(BrokenPlugin, MayComputeOnTheDeviceOfItsInput) {
  ASSERT_TRUE(status("").is_ok());
  const auto model = make_model(job_of(LOCKSTEP_BROKEN_PLUGIN).model(), {1, 4, 4}, 3);
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const auto on_meta = [](at::IntArrayRef shape) {
    return at::empty(shape, at::TensorOptions(at::kMeta).dtype(at::kFloat));
  };
  ASSERT_TRUE((*model)->move_to(at::kMeta).is_ok());
  const std::vector<at::Tensor> parameters = {on_meta({16, 3})};
  const std::vector<at::Tensor> buffers = {on_meta({3})};
  const at::Tensor logits =
      (*model)
          ->forward({.x = on_meta({6, 1, 4, 4})}, parameters, buffers, {.training = true})
          .logits;
  EXPECT_TRUE(logits.is_meta());
}

TEST_F(BrokenPlugin, IsRefusedByTheHandshake) {
  expect("silent", "makes no handshake");
  expect("older torch", "was built with LibTorch 2.3.1, this worker with ");
  expect("newer abi", "was built for version 2 of plugin.h, this worker has version 1");
}

TEST_F(BrokenPlugin, IsRefusedForWhatItDescribes) {
  expect("picky", "images of 28x28 only");
  expect("throws a number", "no std::exception");
  expect("empty", "no parameters");
  expect("twice", "two tensors have the name w");
  expect("hollow", "parameter w has a size below 1");
}

TEST_F(BrokenPlugin, IsRefusedForWhatItComputes) {
  expect("forward throws a number", "no std::exception");
  expect("no output", "gives no tensor");
  expect("short", "gives (2, 2); images need logits (2, 3)");
  expect("no number", "NaN");
  expect("detached", "does not depend on its parameters");
  expect("changes a buffer", "changes its buffer b in evaluation");
}

TEST_F(BrokenPlugin, IsRefusedWhereItIsNone) {
  Dl_info library{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&std::terminate), &library), 0);
  expect("", "does not export lockstep_model_describe", library.dli_fname);
  expect("", "cannot be loaded", "/etc/passwd");
  wire::ModelSpec spec;
  spec.set_name("plugin");
  spec.set_path("/nowhere/libmymodel.so");
  EXPECT_EQ(make_model(spec, {1, 4, 4}, 3).status().code(), Code::kNoInput);
}

TEST_F(BrokenPlugin, AFailureInAStepNamesIt) {
  ::setenv("LOCKSTEP_BROKEN", "late", 1);
  const auto dataset = testing::make_patterns(40, 4, 3);
  LoopbackWorld world(job_of(LOCKSTEP_BROKEN_PLUGIN), *dataset, even_runs(4, 1));
  world.begin_generation(1);
  const auto outcome = std::move(world.step_all()[0]);
  EXPECT_THAT(outcome, FailsWith(Code::kInternal, HasSubstr(LOCKSTEP_BROKEN_PLUGIN),
                                 HasSubstr("tired after three calls")));
}

}  // namespace
}  // namespace lockstep
