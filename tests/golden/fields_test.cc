// Targets that are numbers, several targets, and weights of samples, compared with PyTorch's
// losses, metrics, gradients and evaluation (fields/make.py) in worlds of one to four.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "data/open/open_dataset.h"
#include "tests/golden/golden_run.h"
#include "tests/support/fails_with.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::expect_golden;
using testing::LoopbackWorld;
using testing::make_engine;

constexpr int kRows = 63;
constexpr int kFeatures = 4;
constexpr double kLearningRate = 0.5;

std::string file_of_fields(const std::string& name) {
  return std::string(LOCKSTEP_GOLDEN_DIR) + "/fields/" + name;
}

// The table of make.py, with the columns that a run names.
std::unique_ptr<data::Dataset> table_with(const data::ColumnNames& columns) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("fields-" + std::to_string(::getpid()) + ".csv"))
          .string();
  std::ofstream out(path);
  out << std::setprecision(9) << "a,b,c,d,price,importance,label\n";
  for (int i = 0; i < kRows; ++i) {
    for (int c = 0; c < kFeatures; ++c)
      out << static_cast<double>(((i * kFeatures + c) * 7919 + 13) % 256) / 128 - 1 << ',';
    out << (i * 37 + 5) % 64 / 16.0 - 1 << ',' << i % 4 * 0.5 << ',' << (i * 31 + 7) % 11 % 3
        << '\n';
  }
  out.close();
  wire::DatasetSpec spec;
  spec.set_path(path);
  spec.set_format("csv");
  data::SampleCut cut;
  cut.columns = columns;
  cut.columns.inputs = {"a", "b", "c", "d"};
  auto dataset = data::open_dataset(spec, data::Split::kTrain, "", {}, cut);
  std::filesystem::remove(path);
  EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
  return std::move(dataset).value();
}

data::ColumnNames columns_of(const std::string& run) {
  if (run == "two_targets") return {.targets = {"label", "price"}, .weight = "importance"};
  if (run == "mse") return {.targets = {"price"}};
  if (run == "weighted_huber") return {.targets = {"price"}, .weight = "importance"};
  return {.targets = {"label"}, .weight = "importance"};
}

wire::JobSpec job_with(const std::string& archive, const std::string& loss) {
  wire::JobSpec job = testing::small_job("exported");
  job.mutable_model()->set_path(file_of_fields(archive + ".pt2"));
  job.mutable_train()->set_loss(loss);
  job.mutable_data()->clear_transforms();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_momentum(0);
  job.mutable_optimizer()->set_weight_decay(0);
  job.mutable_optimizer()->set_lr(kLearningRate);
  return job;
}

class GoldenFields : public ::testing::TestWithParam<const char*> {
 protected:
  GoldenFields() {
    std::ifstream in(file_of_fields("expected.json"));
    expected_ = nlohmann::json::parse(in);
  }

  nlohmann::json expected_;
};

TEST_P(GoldenFields, TrainAndEvaluateAsInPyTorchInAnyWorld) {
  const std::string run = GetParam();
  const auto dataset = table_with(columns_of(run));
  ASSERT_EQ(dataset->fingerprint(), expected_["fingerprints"].value(run, ""));
  const nlohmann::json golden = expected_["runs"][run];
  wire::JobSpec job = job_with(golden["archive"], golden["loss"]);
  job.mutable_train()->set_label_smoothing(golden["smoothing"]);
  expect_golden(job, *dataset, golden);
}

INSTANTIATE_TEST_SUITE_P(Runs, GoldenFields,
                         ::testing::Values("two_targets", "mse", "weighted_huber",
                                           "weighted_cross_entropy"),
                         [](const auto& test) { return std::string(test.param); });

// The guess comes from the order of inputs, or from the name of an input of the program.
TEST_F(GoldenFields, ALabelThatIsNamedIsTheOneThatIsGuessed) {
  for (const std::string archive : {"per_sample", "weighted"}) {
    std::vector<double> losses;
    for (const data::ColumnNames& columns :
         {data::ColumnNames{.label = "label"}, data::ColumnNames{.targets = {"label"}}}) {
      const auto dataset = table_with(columns);
      wire::JobSpec job = job_with(archive, "");
      job.mutable_model()->set_path(file_of_fields("../own_loss/" + archive + ".pt2"));
      LoopbackWorld world(job, *dataset, even_runs(4, 2), 256, dataset.get());
      world.begin_generation(1);
      losses.push_back(world.evaluate_all()[0]->loss());
    }
    EXPECT_EQ(losses[0], losses[1]) << archive;
  }
}

// pixels() of make.py.
class PixelSamples final : public data::StoredSamples,
                           public data::Labels,
                           public data::SampleFields {
 public:
  static constexpr uint64_t kPixels = 16;  // of a sample

  PixelSamples() {
    for (uint64_t i = 0; i < kRows * kPixels; ++i) {
      images_.push_back(static_cast<uint8_t>((i * 7919 + 13) % 256));
      const uint64_t pixel_class = (i * 5 + i / kPixels) % 4;
      const bool is_unknown = pixel_class == 3 || i / kPixels % 7 == 0;
      masks_.push_back(static_cast<uint8_t>(is_unknown ? 255 : pixel_class));
    }
  }

  const uint8_t* sample(uint64_t i) const override { return images_.data() + i * kPixels; }
  uint32_t label(uint64_t) const override { return 0; }
  Status read_record(uint64_t i, std::byte* record) const override {
    std::memcpy(record, masks_.data() + i * kPixels, kPixels);
    return Status::ok();
  }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }

 private:
  std::vector<uint8_t> images_;
  std::vector<uint8_t> masks_;
};

// Some slots have no pixel with a known class.
TEST_F(GoldenFields, PixelsWithoutAClassDoNotCount) {
  data::DatasetFacts facts{.samples = kRows,
                           .shape = {1, 4, 4},
                           .classes = 1,
                           .format = "npz",
                           .fingerprint = "pixels",
                           .statistics = {{0, 1}}};
  facts.shape.fields = std::make_shared<const data::FieldList>(
      std::vector<data::FieldSpec>{{.name = "mask", .type = data::FieldType::kU8, .dims = {4, 4}}});
  const data::Dataset dataset(std::move(facts), std::make_shared<const PixelSamples>());
  expect_golden(job_with("pixels", ""), dataset, expected_["pixels"]);
}

// Reads the records from a stage, as a GPU does.
TEST_F(GoldenFields, ADeviceOfItsOwnTrainsToTheCpusBits) {
  for (const std::string run : {"two_targets", "weighted_huber", "weighted_cross_entropy"}) {
    SCOPED_TRACE(run);
    const auto dataset = table_with(columns_of(run));
    const nlohmann::json golden = expected_["runs"][run];
    const wire::JobSpec job = job_with(golden["archive"], golden["loss"]);
    const auto wanted = testing::train(job, *dataset, even_runs(4, 1), 8);
    testing::PlainModule module;
    LoopbackWorld world(job, *dataset, even_runs(4, 1), 256, dataset.get(), {&module});
    world.begin_generation(8);
    const auto got = world.train_to(8);
    EXPECT_EQ(got.losses, wanted.losses);
    EXPECT_TRUE(got.state == wanted.state);
  }
}

TEST_F(GoldenFields, WhatALossCannotCompareIsRefusedByName) {
  const auto refusal = [](const std::string& archive, const std::string& loss,
                          const data::ColumnNames& columns) {
    return make_engine(job_with(archive, loss), *table_with(columns)).status();
  };
  EXPECT_THAT(refusal("logits", "", {.targets = {"price"}}),
              FailsWith(Code::kConfig, Names("price (float32)"), Advises("train.loss")));
  EXPECT_THAT(refusal("one_output", "", {.targets = {"price"}}),
              FailsWith(Code::kUsage, Names("cross_entropy", "price (float32)"), Advises("mse")));
  EXPECT_THAT(refusal("one_output", "mse", {.targets = {"price", "importance"}}),
              FailsWith(Code::kUsage, Names("price (float32), importance (float32)", "mse"),
                        Advises("export a model")));
  EXPECT_THAT(refusal("two_targets", "", {.targets = {"price"}}),
              FailsWith(Code::kConfig, Names("3 inputs", "price"), Advises("forward takes")));
  EXPECT_THAT(refusal("two_targets", "", {.targets = {"price", "importance"}}),
              FailsWith(Code::kConfig, Names("price, rows, label", "price, importance"),
                        Advises("names of the job")));
  EXPECT_THAT(refusal("two_targets", "mse", {.targets = {"label", "price"}}),
              FailsWith(Code::kUsage, Names("train.loss mse")));
}

}  // namespace
}  // namespace lockstep
