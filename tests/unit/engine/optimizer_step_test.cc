// Tests how the engine applies the optimizer's settings: the same bits for any number of ranks,
// clipping over the whole gradient, and groups of parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::find_spared;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::small_job;
using testing::train;
using testing::TrainResult;

class SameBitsWith : public ::testing::TestWithParam<const char*> {};

TEST_P(SameBitsWith, ClippingAndSparedVectorsForAnyNumberOfRanks) {
  const auto dataset = make_patterns(83);
  wire::JobSpec job = small_job("mlp");
  wire::OptimizerSpec* optimizer = job.mutable_optimizer();
  optimizer->set_name(GetParam());
  optimizer->set_momentum(0.5);
  optimizer->set_alpha(0.9);
  optimizer->set_rho(0.9);
  optimizer->set_momentum_decay(0.004);
  optimizer->set_spare_vectors(true);
  optimizer->set_clip_norm(0.5);
  const TrainResult one = train(job, *dataset, even_runs(4, 1), 5);
  for (const uint32_t ranks : {2u, 3u, 4u}) {
    const TrainResult other = train(job, *dataset, even_runs(4, ranks), 5);
    EXPECT_EQ(other.losses, one.losses) << ranks;
    EXPECT_TRUE(other.state == one.state) << ranks;
  }
  optimizer->set_clip_norm(0);
  EXPECT_FALSE(train(job, *dataset, even_runs(4, 1), 5).state == one.state);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SameBitsWith,
                         ::testing::Values("sgd", "adam", "adamw", "nadam", "rmsprop", "adagrad",
                                           "adadelta"),
                         [](const auto& c) { return std::string(c.param); });

// The weights after one step minus those before, by what the state's bytes hold.
std::vector<float> change(const wire::JobSpec& job, const data::Dataset& dataset) {
  LoopbackWorld world(job, dataset, even_runs(4, 2));
  world.begin_generation(1);
  const std::string before = testing::state_bytes(world.engine(0), false);
  world.train_to(1);
  const std::string after = testing::state_bytes(world.engine(0), false);
  std::vector<float> a(before.size() / sizeof(float)), b(a.size());
  std::memcpy(a.data(), before.data(), before.size());
  std::memcpy(b.data(), after.data(), after.size());
  for (size_t i = 0; i < a.size(); ++i) b[i] -= a[i];
  return b;
}

double length_of(const std::vector<float>& values) {
  double squares = 0;
  for (const float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(squares);
}

TEST(ClipNorm, ShortensTheWholeStepToItsLengthAndKeepsItsDirection) {
  const auto dataset = make_patterns(80);
  wire::JobSpec job = small_job("mlp");
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(1);
  job.mutable_optimizer()->set_weight_decay(0);
  const std::vector<float> whole = change(job, *dataset);
  const double length = length_of(whole);
  ASSERT_GT(length, 0.1);
  job.mutable_optimizer()->set_clip_norm(length / 4);
  const std::vector<float> clipped = change(job, *dataset);
  EXPECT_NEAR(length_of(clipped), length / 4, length * 1e-3);
  for (size_t i = 0; i < whole.size(); i += 97) EXPECT_NEAR(clipped[i], whole[i] / 4, 1e-4);
  job.mutable_optimizer()->set_clip_norm(length * 2);
  EXPECT_EQ(change(job, *dataset), whole);
}

TEST(SparedVectors, AreTheBiasesAndNothingElse) {
  const auto dataset = make_patterns(80);
  for (const auto& [name, dimensions, is_spared] : find_spared(small_job("mlp"), *dataset))
    EXPECT_EQ(is_spared, dimensions == 1) << name;
}

}  // namespace
}  // namespace lockstep
