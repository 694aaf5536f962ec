// A TorchScript file trains as PyTorch trains it: losses and buffers from torchscript.py.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/open/open_dataset.h"
#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";
constexpr double kRelative = 1e-5;
constexpr double kRelativeBuffers = 1e-4;

std::string golden(const std::string& name) {
  return std::string(LOCKSTEP_GOLDEN_DIR) + "/" + name;
}

wire::JobSpec job_of(const nlohmann::json& expected) {
  wire::JobSpec job = testing::small_job("torchscript");
  job.set_seed(expected["seed"]);
  job.mutable_model()->set_path(golden("torchscript_images.pt"));
  job.mutable_train()->set_global_batch(expected["batch"]);
  job.mutable_train()->set_slots(1);  // PyTorch normalises and draws for the whole batch
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(0.01);
  job.mutable_optimizer()->set_momentum(0.9);
  job.mutable_optimizer()->set_weight_decay(1e-4);
  return job;
}

void expect_buffer(const StateTensor& tensor, const std::vector<double>& expected) {
  ASSERT_EQ(tensor.bytes / (tensor.dtype == DType::kI64 ? 8 : 4), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (tensor.dtype == DType::kI64) {
      int64_t value = 0;
      std::memcpy(&value, tensor.data + i * sizeof value, sizeof value);
      EXPECT_EQ(static_cast<double>(value), expected[i]) << tensor.name;
    } else {
      float value = 0;
      std::memcpy(&value, tensor.data + i * sizeof value, sizeof value);
      EXPECT_NEAR(value, expected[i], kRelativeBuffers * std::abs(expected[i])) << tensor.name;
    }
  }
}

TEST(GoldenTorchScript, AFileTrainsAsInPyTorchWithItsDropoutAndBuffers) {
  if (!std::filesystem::exists(kFashionMnist))
    GTEST_SKIP() << kFashionMnist << " is not there; apt-get install dataset-fashion-mnist";
  std::ifstream in(golden("torchscript.json"));
  const nlohmann::json expected = nlohmann::json::parse(in);
  const auto cache = std::filesystem::temp_directory_path() /
                     ("lockstep-golden-script-" + std::to_string(::getpid()));
  wire::DatasetSpec spec;
  spec.set_path(kFashionMnist);
  spec.set_format("auto");
  auto dataset = data::open_dataset(spec, data::Split::kTrain, cache);
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  ASSERT_EQ((*dataset)->fingerprint(), expected["fingerprint"]);

  const std::vector<double> losses = expected["losses"];
  testing::LoopbackWorld world(job_of(expected), **dataset, testing::even_runs(1, 1));
  world.begin_generation(losses.size());
  const std::vector<double> ours = world.train_to(losses.size()).losses;
  ASSERT_EQ(ours.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(ours[i], losses[i], kRelative * losses[i]) << "step " << i;
  int compared = 0;
  for (const StateTensor& tensor : testing::state_of(world.engine(0))) {
    if (tensor.section != StateSection::kBuffer) continue;
    expect_buffer(tensor, expected["buffers"][tensor.name]);
    ++compared;
  }
  EXPECT_EQ(compared, 4);  // level, running_mean, running_var, num_batches_tracked
  dataset->reset();
  std::filesystem::remove_all(cache);
}

}  // namespace
}  // namespace lockstep
