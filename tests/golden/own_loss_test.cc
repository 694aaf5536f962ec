// Losses that models compute themselves, and losses of train.loss, compared with PyTorch's losses,
// metrics, gradients and evaluation (own_loss/make.py), over slots of several sizes and in worlds
// of one to four.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <tuple>

#include "comm/base/prng.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"
#include "worker/optim/loss_scale.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_engine;

constexpr double kRelative = 1e-5;
constexpr double kAbsolute = 1e-6;
constexpr int kSamples = 63;  // three steps of 20, and one of 3 in four slots: one is empty
constexpr int kColumns = 4;
constexpr double kRate = 0.5;

std::string own_file(const std::string& name) {
  return std::string(LOCKSTEP_GOLDEN_DIR) + "/own_loss/" + name;
}

// table() of make.py.
std::unique_ptr<data::Dataset> make_table(int classes) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("own-loss-" + std::to_string(::getpid()) + ".csv"))
          .string();
  std::ofstream out(path);
  out << std::setprecision(9) << "a,b,c,d,label\n";
  for (int i = 0; i < kSamples; ++i) {
    for (int c = 0; c < kColumns; ++c)
      out << static_cast<double>(((i * kColumns + c) * 7919 + 13) % 256) / 128 - 1 << ',';
    out << (i * 31 + 7) % 11 % classes << '\n';
  }
  out.close();
  wire::DatasetSpec spec;
  spec.set_path(path);
  spec.set_format("csv");
  auto dataset = data::open_dataset(spec, data::Split::kTrain, "");
  std::filesystem::remove(path);
  EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
  return std::move(dataset).value();
}

wire::JobSpec job_of(const std::string& file, const std::string& loss = "") {
  const bool is_script = file.ends_with(".pt");
  wire::JobSpec job = testing::small_job(is_script ? "torchscript" : "exported");
  job.mutable_model()->set_path(own_file(file));
  job.mutable_train()->set_loss(loss);
  job.mutable_data()->clear_transforms();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_momentum(0);
  job.mutable_optimizer()->set_weight_decay(0);
  job.mutable_optimizer()->set_lr(kRate);
  return job;
}

std::map<std::string, std::vector<float>> parameters_of(Engine& engine) {
  std::map<std::string, std::vector<float>> out;
  for (const StateTensor& t : testing::state_of(engine)) {
    if (t.section != StateSection::kParameter) continue;
    auto& values = out[t.name];
    values.resize(t.bytes / sizeof(float));
    std::memcpy(values.data(), t.data, t.bytes);
  }
  return out;
}

void expect_near(double got, double wanted, const std::string& what) {
  EXPECT_NEAR(got, wanted, kAbsolute + kRelative * std::abs(wanted)) << what;
}

template <typename Report>
void expect_metrics(const Report& report, const nlohmann::json& wanted, const std::string& when) {
  ASSERT_EQ(static_cast<size_t>(report.metrics_size()), wanted.size()) << when;
  for (const wire::Metric& metric : report.metrics()) {
    ASSERT_TRUE(wanted.contains(metric.name())) << metric.name();
    expect_near(metric.value(), wanted[metric.name()], metric.name() + " " + when);
  }
}

// Computes the gradients of the first step from the parameters before and after it.
void expect_gradients(const std::map<std::string, std::vector<float>>& before,
                      const std::map<std::string, std::vector<float>>& after,
                      const nlohmann::json& norms) {
  for (const auto& [name, wanted] : norms.items()) {
    double squares = 0;
    for (size_t i = 0; i < before.at(name).size(); ++i) {
      const double gradient = (double{before.at(name)[i]} - double{after.at(name)[i]}) / kRate;
      squares += gradient * gradient;
    }
    expect_near(std::sqrt(squares), wanted, "the gradient of " + name);
  }
}

class GoldenOwnLoss : public ::testing::TestWithParam<const char*> {
 protected:
  static nlohmann::json expected() {
    std::ifstream in(own_file("expected.json"));
    return nlohmann::json::parse(in);
  }

  static void expect_run(const std::string& file, const nlohmann::json& golden, uint32_t ranks,
                         std::string* state) {
    SCOPED_TRACE(file + ", ranks " + std::to_string(ranks));
    const auto dataset = make_table(golden["classes"]);
    const std::string classes = golden["classes"].dump();
    ASSERT_EQ(dataset->fingerprint(), expected()["fingerprints"][classes]);
    LoopbackWorld world(job_of(file, golden["loss"]), *dataset, even_runs(4, ranks), 256,
                        dataset.get());
    world.begin_generation(golden["losses"].size());
    const auto before = parameters_of(world.engine(0));
    for (size_t step = 0; step < golden["losses"].size(); ++step) {
      const std::string when = "in step " + std::to_string(step);
      const auto outcomes = world.step_all();
      for (const auto& outcome : outcomes)
        ASSERT_TRUE(outcome.is_ok()) << outcome.status().message();
      const wire::StepRecord& record = outcomes[0].value().record;
      expect_near(record.loss(), golden["losses"][step], "loss " + when);
      expect_metrics(record, golden["metrics"][step], when);
      EXPECT_EQ(record.skipped(), golden["skipped"][step].get<bool>()) << when;
      EXPECT_EQ(record.no_accuracy(), golden["loss"] != "bce");
      if (step == 0)
        expect_gradients(before, parameters_of(world.engine(0)), golden["gradient_norms"]);
    }
    const auto evaluations = world.evaluate_all();
    for (const auto& evaluation : evaluations) {
      ASSERT_TRUE(evaluation.is_ok()) << evaluation.status().message();
      expect_near(evaluation->loss(), golden["eval"]["loss"], "loss of the evaluation");
      expect_metrics(*evaluation, golden["eval"]["metrics"], "of the evaluation");
      EXPECT_EQ(evaluation->correct(), golden["eval"].value("correct", 0u));
      EXPECT_EQ(evaluation->samples(), static_cast<uint64_t>(kSamples));
    }
    const std::string bytes = testing::state_bytes(world.engine(0), /*with_optimizer=*/true);
    if (state->empty()) *state = bytes;
    EXPECT_TRUE(bytes == *state) << "other bits than in the first world";
  }
};

TEST_P(GoldenOwnLoss, TrainsAndEvaluatesAsInPyTorchInAnyWorld) {
  const nlohmann::json golden = expected()["runs"][GetParam()];
  std::string state;
  for (const uint32_t ranks : {1u, 2u, 3u, 4u})
    expect_run(golden["archive"].get<std::string>() + ".pt2", golden, ranks, &state);
}

INSTANTIATE_TEST_SUITE_P(Runs, GoldenOwnLoss,
                         ::testing::Values("cross_entropy_of_its_own", "weighted", "scalar", "auto",
                                           "bce", "mse", "l1", "huber"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(GoldenOwnLoss, ATorchScriptFileGivesTheSameAsTheProgram) {
  std::string state;
  for (const uint32_t ranks : {1u, 3u})
    expect_run("weighted.pt", expected()["runs"]["weighted"], ranks, &state);
}

template <typename T>
T scaler_value(Engine& engine, const std::string& name) {
  T value{};
  for (const StateTensor& t : testing::state_of(engine))
    if (t.name == name) std::memcpy(&value, t.data, sizeof value);
  return value;
}

TEST(OwnLoss, AnOverflowInFp16IsSkippedAlikeInAnyWorld) {
  const auto dataset = make_table(3);
  constexpr Step kSteps = 60;
  for (const auto& [file, loss] :
       {std::pair{"weighted.pt2", ""}, {"per_sample.pt2", ""}, {"one_output.pt2", "mse"}}) {
    SCOPED_TRACE(std::string(file) + " " + loss);
    wire::JobSpec job = job_of(file, loss);
    job.mutable_train()->set_precision("fp16");
    job.mutable_train()->set_loss_scale(0x1p40);
    std::string state;
    for (const uint32_t ranks : {1u, 4u}) {
      LoopbackWorld world(job, *dataset, even_runs(4, ranks), 256);
      world.begin_generation(kSteps);
      const auto losses = world.train_to(kSteps).losses;
      EXPECT_LT(losses.back(), losses.front());
      Engine& engine = world.engine(0);
      EXPECT_LT(scaler_value<float>(engine, kLossScaleName), 0x1p40f);
      EXPECT_GT(scaler_value<int64_t>(engine, kSkippedStepsName), 0);
      EXPECT_LT(scaler_value<int64_t>(engine, kSkippedStepsName), int64_t{kSteps});
      const std::string bytes = testing::state_bytes(engine, true);
      if (state.empty()) state = bytes;
      EXPECT_TRUE(bytes == state);
    }
  }
}

// Runs the kernel's code for gate, weight, scale and clipping on the CPU.
TEST(OwnLoss, ADeviceOfItsOwnTrainsToTheCpusBits) {
  constexpr Step kSteps = 12;
  for (const auto& [file, loss, classes] : {std::tuple{"weighted.pt2", "", 3},
                                            {"scalar.pt2", "", 3},
                                            {"no_weight.pt2", "", 3},
                                            {"one_output.pt2", "bce", 2}}) {
    for (const std::string precision : {"fp32", "fp16"}) {
      SCOPED_TRACE(file + (" " + precision));
      const auto dataset = make_table(classes);
      wire::JobSpec job = job_of(file, loss);
      job.mutable_optimizer()->set_clip_norm(0.5);
      job.mutable_train()->set_precision(precision);
      job.mutable_train()->set_loss_scale(0x1p40);
      job.mutable_train()->set_loss_scale_backoff(0x1p-12);
      const auto expected = testing::train(job, *dataset, even_runs(4, 1), kSteps);
      for (const uint32_t ranks : {1u, 2u}) {
        std::vector<std::unique_ptr<testing::PlainModule>> owned;
        std::vector<DeviceModule*> modules;
        for (uint32_t r = 0; r < ranks; ++r) {
          owned.push_back(std::make_unique<testing::PlainModule>());
          modules.push_back(owned.back().get());
        }
        LoopbackWorld world(job, *dataset, even_runs(4, ranks), 256, dataset.get(), modules);
        world.begin_generation(kSteps);
        const auto got = world.train_to(kSteps);
        EXPECT_EQ(got.losses, expected.losses);
        EXPECT_EQ(got.common_hashes, expected.common_hashes);
        EXPECT_TRUE(got.state == expected.state);
        for (const auto& evaluation : world.evaluate_all()) EXPECT_TRUE(evaluation.is_ok());
      }
    }
  }
}

TEST(OwnLoss, AStepWithoutAnyWeightIsSkippedAndCounted) {
  const auto dataset = make_table(3);
  LoopbackWorld world(job_of("no_weight.pt2"), *dataset, even_runs(4, 2), 256, dataset.get());
  world.begin_generation(3);
  const auto before = parameters_of(world.engine(0));
  for (int step = 0; step < 3; ++step) {
    const auto outcomes = world.step_all();
    ASSERT_TRUE(outcomes[0].is_ok()) << outcomes[0].status().message();
    EXPECT_TRUE(outcomes[0]->record.skipped());
    EXPECT_EQ(outcomes[0]->record.loss(), 0);
  }
  EXPECT_EQ(world.evaluate_all()[0]->loss(), 0);
  EXPECT_EQ(parameters_of(world.engine(0)), before);
  EXPECT_EQ(world.engine(0).applied_steps(), 3u);
  EXPECT_EQ(scaler_value<int64_t>(world.engine(0), kSkippedStepsName), 3);
}

// The record says that the samples are at fault, and not that the loss scaler left the step out.
TEST(OwnLoss, AWeightThatIsNoNumberChangesNothingAndTheLossSaysSo) {
  const auto dataset = make_table(3);
  LoopbackWorld world(job_of("odd_weight.pt2"), *dataset, even_runs(4, 2), 256, dataset.get());
  world.begin_generation(4);  // an epoch: one of the steps has the sample
  int odd = 0;
  for (int step = 0; step < 4; ++step) {
    const auto before = parameters_of(world.engine(0));
    const auto outcomes = world.step_all();
    ASSERT_TRUE(outcomes[0].is_ok()) << outcomes[0].status().message();
    EXPECT_FALSE(outcomes[0]->record.skipped());
    const bool is_odd = std::isnan(outcomes[0]->record.loss());
    odd += is_odd ? 1 : 0;
    EXPECT_EQ(parameters_of(world.engine(0)) == before, is_odd) << "step " << step;
  }
  EXPECT_EQ(odd, 1);
  EXPECT_TRUE(std::isnan(world.evaluate_all()[0]->loss()));
}

// Journals and peers of earlier versions know this layout and these hashes.
TEST(OwnLoss, AJobWithoutOneKeepsItsLayoutAndItsHashes) {
  const auto dataset = testing::make_patterns(40);
  LoopbackWorld world(testing::small_job("mlp"), *dataset, even_runs(4, 2), 256);
  const BufferLayout& layout = world.engine(0).gradient_buffer().layout();
  EXPECT_EQ(layout.elements - layout.statistics, 32u);  // 16, and a digest of four for each slot
  world.begin_generation(2);
  const auto outcomes = world.step_all();
  ASSERT_TRUE(outcomes[0].is_ok()) << outcomes[0].status().message();
  const wire::StepRecord& record = outcomes[0]->record;
  EXPECT_EQ(record.common_hash(),
            stream_key({record.step(), record.epoch(), record.samples(), record.skipped(),
                        record.correct(), std::bit_cast<uint64_t>(record.loss()),
                        std::bit_cast<uint64_t>(record.lr())}));
  EXPECT_GT(record.correct(), 0u);
  EXPECT_EQ(record.metrics_size(), 0);
  EXPECT_FALSE(record.no_accuracy());
}

TEST(OwnLoss, WhatGivesNoLossOfASampleIsRefusedByName) {
  const auto dataset = make_table(3);
  const auto refusal = [&](const std::string& file) {
    return make_engine(job_of(file), *dataset).status();
  };
  EXPECT_THAT(refusal("refused_matrix.pt2"),
              FailsWith(Code::kConfig, Names("refused_matrix.pt2", "(2, 3)"), Advises("(2)")));
  EXPECT_THAT(refusal("refused_not_finite.pt2"),
              FailsWith(Code::kConfig, Names("refused_not_finite.pt2"), Says("NaN")));
  EXPECT_THAT(refusal("refused_no_loss.pt2"),
              FailsWith(Code::kConfig, Names("refused_no_loss.pt2"), Advises("\"loss\"")));
  EXPECT_THAT(refusal("refused_negative.pt2"),
              FailsWith(Code::kConfig, Names("refused_negative.pt2", "weight"), Says("negative")));
  EXPECT_THAT(refusal("refused_taken_name.pt2"),
              FailsWith(Code::kConfig, Names("refused_taken_name.pt2", "lr"), Advises("name")));
  EXPECT_THAT(refusal("refused_two_labels.pt2"),
              FailsWith(Code::kConfig, Names("int64 (s", ", 2)"), Advises("export it")));
}

TEST(OwnLoss, APlugInGivesItsLossWeightsAndMetrics) {
  const auto dataset = make_table(3);
  wire::JobSpec job = job_of("");
  job.mutable_model()->set_name("plugin");
  job.mutable_model()->set_path(LOCKSTEP_LOSS_PLUGIN);
  constexpr Step kSteps = 20;
  const auto one = testing::train(job, *dataset, even_runs(4, 1), kSteps);
  EXPECT_NEAR(one.losses.front(), std::log(3), 0.3);  // weights divide what they multiply
  EXPECT_LT(one.losses.back(), one.losses.front());
  const auto three = testing::train(job, *dataset, even_runs(4, 3), kSteps);
  EXPECT_EQ(three.losses, one.losses);
  EXPECT_TRUE(three.state == one.state);
  LoopbackWorld world(job, *dataset, even_runs(4, 1), 256);
  world.begin_generation(1);
  const auto outcomes = world.step_all();
  ASSERT_EQ(outcomes[0]->record.metrics_size(), 1);
  EXPECT_EQ(outcomes[0]->record.metrics(0).name(), "hit");

  for (const auto& [how, word] : {std::pair{"matrix", "(2, 3)"}, {"name", "two words"}}) {
    ::setenv("LOCKSTEP_LOSS_PLUGIN", how, 1);
    EXPECT_THAT(make_engine(job, *dataset).status(),
                FailsWith(Code::kConfig, Names(LOCKSTEP_LOSS_PLUGIN, word)));
    ::unsetenv("LOCKSTEP_LOSS_PLUGIN");
  }
}

TEST(OwnLoss, ALossThatShiftsTokensAgainIsRefused) {
  const auto text = testing::make_text(40, 8);
  EXPECT_THAT(make_engine(job_of("refused_shifts.pt2"), *text).status(),
              FailsWith(Code::kUsage, Names("TinyForCausalLM"), Advises("logits")));
}

TEST(OwnLoss, WhatCannotGoWithItIsRefused) {
  const auto dataset = make_table(3);
  const auto refusal = [&](const std::string& file, const std::string& loss, const auto& change) {
    wire::JobSpec job = job_of(file, loss);
    change(&job);
    return make_engine(job, *dataset).status();
  };
  const auto nothing = [](wire::JobSpec*) {};
  EXPECT_THAT(refusal("per_sample.pt2", "mse", nothing),
              FailsWith(Code::kUsage, Names("train.loss mse"), Advises("leave it out")));
  EXPECT_THAT(refusal("one_output.pt2", "bce", nothing),
              FailsWith(Code::kUsage, Names("train.loss: bce", "3"), Advises("cross_entropy")));
  EXPECT_THAT(refusal("one_output.pt2", "", nothing),
              FailsWith(Code::kConfig, Names("(2, 1)", "(2, 3)"), Advises("change")));
  EXPECT_THAT(refusal("per_sample.pt2", "",
                      [](wire::JobSpec* job) { job->mutable_train()->set_label_smoothing(0.1); }),
              FailsWith(Code::kUsage, Names("train.label_smoothing"), Advises("in the model")));
  EXPECT_THAT(refusal("per_sample.pt2", "",
                      [](wire::JobSpec* job) { job->mutable_data()->add_transforms("mixup"); }),
              FailsWith(Code::kUsage, Names("mixup"), Advises("data.transforms")));
  EXPECT_THAT(
      refusal("one_output.pt2", "huber",
              [](wire::JobSpec* job) { job->mutable_checkpoint()->set_best("accuracy"); }),
      FailsWith(Code::kUsage, Names("checkpoint.best accuracy"), Advises("checkpoint.best: loss")));
}

}  // namespace
}  // namespace lockstep
