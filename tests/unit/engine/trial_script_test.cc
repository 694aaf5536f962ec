// A trial step of a model that draws from LibTorch's own generator, as a TorchScript file does.
#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/loopback_world.h"
#include "worker/engine/memory_meter.h"
#include "worker/model/model_file.h"

namespace lockstep {
namespace {

TEST(TrialStep, LeavesTheGeneratorThatAScriptDrawsFromAsItWas) {
  const auto dataset = testing::make_patterns(200, 12, 10);
  wire::JobSpec job = testing::small_job("torchscript");
  const std::string path = std::string(LOCKSTEP_GOLDEN_DIR) + "/torchscript_images.pt";
  job.mutable_model()->set_path(path);
  job.mutable_model()->set_sha256(read_model_file(path)->sha256);
  job.mutable_train()->set_global_batch(0);
  auto engine = testing::make_engine(job, *dataset);
  ASSERT_TRUE(engine.is_ok()) << engine.status().message();
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(77);
  const at::Tensor numbers = generator.get_state();
  const std::string state = testing::state_bytes(**engine, true);
  const auto meter = make_host_meter(1);
  const auto found = (*engine)->largest_slot(*meter, 1);
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_EQ(*found, 32u);
  EXPECT_TRUE(at::equal(generator.get_state(), numbers));
  EXPECT_TRUE(testing::state_bytes(**engine, true) == state);
}

}  // namespace
}  // namespace lockstep
