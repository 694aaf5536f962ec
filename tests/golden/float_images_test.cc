// Images and volumes of floats, and rows of ids, against PyTorch's: losses, metrics, gradients and
// evaluation from float_images/make.py, in worlds of one to four.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "data/open/open_dataset.h"
#include "tests/golden/golden_run.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/array_files.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::expect_golden;
using testing::LoopbackWorld;

constexpr uint64_t kSamples = 63;
constexpr uint64_t kTokens = 7;
constexpr double kLearningRate = 0.1;

std::string float_images_file(const std::string& name) {
  return std::string(LOCKSTEP_GOLDEN_DIR) + "/float_images/" + name;
}

// values() of make.py.
template <typename T>
std::vector<T> values_of(uint64_t count) {
  std::vector<T> values;
  for (uint64_t i = 0; i < kSamples * count; ++i)
    values.push_back(static_cast<T>((i * 7919 + 13) % 256) / 128 - 1);
  return values;
}

class GoldenFloatImages : public ::testing::TestWithParam<const char*> {
 protected:
  GoldenFloatImages() {
    std::ifstream in(float_images_file("expected.json"));
    expected_ = nlohmann::json::parse(in);
  }

  std::unique_ptr<data::Dataset> arrays_of(const std::string& run) {
    std::vector<float> price;
    std::vector<int64_t> label;
    for (uint64_t i = 0; i < kSamples; ++i) {
      price.push_back(static_cast<float>((i * 37 + 5) % 64) / 16 - 1);
      label.push_back(static_cast<int64_t>((i * 31 + 7) % 11 % 3));
    }
    std::vector<uint16_t> ids;
    std::vector<int64_t> mask;
    for (uint64_t i = 0; i < kSamples * kTokens; ++i) {
      ids.push_back(static_cast<uint16_t>((i * 7919 + 13) % 32));
      mask.push_back(i % kTokens < 3 + i / kTokens % 5 ? 1 : 0);
    }
    data::write_arrays(
        dir_.path(run), "", run == "volumes" ? ".safetensors" : ".npz",
        {data::test_array("image", "<f4", {kSamples, 2, 4, 5}, values_of<float>(40)),
         data::test_array("scan", "<f8", {kSamples, 1, 3, 5, 4}, values_of<double>(60)),
         data::test_array("input_ids", "<u2", {kSamples, kTokens}, ids),
         data::test_array("attention_mask", "<i8", {kSamples, kTokens}, mask),
         data::test_array("price", "<f4", {kSamples}, price),
         data::test_array("label", "<i8", {kSamples}, label)});
    wire::DatasetSpec spec;
    spec.set_path(dir_.path(run));
    spec.set_format("auto");
    data::SampleCut cut;
    if (run == "images") cut.columns = {.inputs = {"image"}, .targets = {"label", "price"}};
    if (run == "volumes") cut.columns = {.inputs = {"scan"}};
    if (run == "ids")
      cut.columns = {.inputs = {"input_ids", "attention_mask"}, .targets = {"label"}};
    auto dataset = data::open_dataset(spec, data::Split::kTrain, dir_.path("cache"), {}, cut);
    EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
    return std::move(dataset).value();
  }

  static wire::JobSpec job_of(const std::string& run) {
    wire::JobSpec job = testing::small_job("exported");
    job.mutable_model()->set_path(float_images_file(run + ".pt2"));
    job.mutable_data()->clear_transforms();
    job.mutable_optimizer()->set_name("sgd");
    job.mutable_optimizer()->set_momentum(0);
    job.mutable_optimizer()->set_weight_decay(0);
    job.mutable_optimizer()->set_lr(kLearningRate);
    return job;
  }

  TemporaryDirectory dir_;
  nlohmann::json expected_;
};

TEST_P(GoldenFloatImages, TrainAndEvaluateAsInPyTorchInAnyWorld) {
  const std::string run = GetParam();
  const auto dataset = arrays_of(run);
  ASSERT_EQ(dataset->fingerprint(), expected_["fingerprints"].value(run, ""));
  expect_golden(job_of(run), *dataset, expected_["runs"][run]);
}

// It gets floats, not bytes to transform.
TEST_P(GoldenFloatImages, ADeviceOfItsOwnTrainsToTheCpusBits) {
  const std::string run = GetParam();
  const auto dataset = arrays_of(run);
  const wire::JobSpec job = job_of(run);
  const auto wanted = testing::train(job, *dataset, even_runs(4, 1), 8);
  testing::PlainModule module;
  LoopbackWorld world(job, *dataset, even_runs(4, 1), 256, dataset.get(), {&module});
  world.begin_generation(8);
  const auto got = world.train_to(8);
  EXPECT_EQ(got.losses, wanted.losses);
  EXPECT_TRUE(got.state == wanted.state);
}

INSTANTIATE_TEST_SUITE_P(Runs, GoldenFloatImages, ::testing::Values("images", "volumes", "ids"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lockstep
