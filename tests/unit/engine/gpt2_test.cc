// GPT-2 in the engine: the same bits for any number of ranks, losses and right predictions by
// token, and groups of parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::find_spared;
using testing::LoopbackWorld;
using testing::make_text;
using testing::small_job;
using testing::train;
using testing::TrainResult;

constexpr uint32_t kBlock = 12;

wire::JobSpec gpt2_of_words(double dropout = 0) {
  wire::JobSpec job = testing::small_gpt2(kBlock);
  job.mutable_model()->set_dropout(dropout);
  return job;
}

TEST(Gpt2, SameBitsForAnyNumberOfRanksAndAnyBuckets) {
  for (const double dropout : {0.0, 0.2}) {
    SCOPED_TRACE(dropout);
    const auto dataset = make_text(63, kBlock);  // the last step has 3 sequences for 4 slots
    const wire::JobSpec job = gpt2_of_words(dropout);
    const TrainResult one = train(job, *dataset, even_runs(4, 1), 8);
    for (const uint32_t ranks : {2u, 3u, 4u}) {
      SCOPED_TRACE(ranks);
      const TrainResult other = train(job, *dataset, even_runs(4, ranks), 8);
      EXPECT_EQ(other.losses, one.losses);
      EXPECT_TRUE(other.state == one.state);
    }
    const TrainResult bucketed = train(job, *dataset, {{0, 1}, {1, 4}}, 8, 4096);
    EXPECT_TRUE(bucketed.state == one.state);
  }
}

TEST(Gpt2, DropoutTakesPart) {
  const auto dataset = make_text(40, kBlock);
  EXPECT_NE(train(gpt2_of_words(0), *dataset, even_runs(4, 1), 1).losses,
            train(gpt2_of_words(0.2), *dataset, even_runs(4, 1), 1).losses);
}

TEST(Gpt2, LearnsAndSaysLossAndRightPredictionsByToken) {
  const auto dataset = make_text(60, kBlock);
  wire::JobSpec job = gpt2_of_words();
  job.mutable_optimizer()->set_lr(1e-2);
  std::set<double> losses;
  for (const uint32_t ranks : {1u, 2u, 4u}) {
    LoopbackWorld world(job, *dataset, even_runs(4, ranks), 0, dataset.get());
    world.begin_generation(90);
    const TrainResult result = world.train_to(89);
    EXPECT_NEAR(result.losses.front(), std::log(256), 0.1);  // nothing is known of 256 bytes yet
    EXPECT_LT(result.losses.back(), 2.5);
    const auto outcomes = world.step_all();
    ASSERT_TRUE(outcomes[0].is_ok()) << outcomes[0].status().message();
    const wire::StepRecord& record = outcomes[0]->record;
    EXPECT_EQ(record.samples(), 20u);
    EXPECT_GT(record.correct(), record.samples());
    EXPECT_LE(record.correct(), record.samples() * kBlock);
    for (const auto& report : world.evaluate_all()) {
      ASSERT_TRUE(report.is_ok()) << report.status().message();
      EXPECT_EQ(report->samples(), 60u * kBlock);
      EXPECT_NEAR(report->loss(), record.loss(), 0.3);
      EXPECT_NEAR(static_cast<double>(report->correct()) / (60 * kBlock),
                  static_cast<double>(record.correct()) / (20 * kBlock), 0.15);
      losses.insert(report->loss());
    }
  }
  EXPECT_EQ(losses.size(), 1u);
}

// Biases begin at 0, where nothing decays.
TEST(Gpt2, SparedVectorsAreItsNormsAndNeitherEmbedding) {
  const auto dataset = make_text(40, kBlock);
  for (const auto& [name, dimensions, is_spared] : find_spared(gpt2_of_words(), *dataset)) {
    const bool is_norm_weight =
        name.find("ln_") != std::string::npos && name.find(".weight") != std::string::npos;
    EXPECT_EQ(is_spared, is_norm_weight) << name;
  }
}

TEST(Gpt2, RefusesImagesAndImageModelsRefuseTokens) {
  const auto images = testing::make_patterns(40);
  const auto text = make_text(40, kBlock);
  EXPECT_EQ(testing::make_engine(gpt2_of_words(), *images).status().code(), Code::kUsage);
  EXPECT_EQ(testing::make_engine(small_job("mlp"), *text).status().code(), Code::kUsage);
  wire::JobSpec odd = gpt2_of_words();
  odd.mutable_model()->set_n_head(3);
  EXPECT_EQ(testing::make_engine(odd, *text).status().code(), Code::kUsage);
}

}  // namespace
}  // namespace lockstep
