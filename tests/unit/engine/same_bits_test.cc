// The promise: the same bits for any number of workers.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::small_job;
using testing::TrainResult;

TrainResult train(const wire::JobSpec& job, const data::Dataset& dataset,
                  const std::vector<SlotRun>& runs, Step steps, uint64_t bucket_bytes = 0) {
  LoopbackWorld world(job, dataset, runs, bucket_bytes);
  world.begin_generation(steps);
  return world.train_to(steps);
}

struct Case {
  std::string name;
  std::string model;
  double dropout = 0;
  bool batch_norm = false;
  uint64_t global_batch = 0;
  uint32_t samples = 0;
};

class SameBits : public ::testing::TestWithParam<Case> {};

TEST_P(SameBits, ForAnyNumberOfRanksAndAnyBuckets) {
  const Case& c = GetParam();
  const auto dataset = make_patterns(c.samples);
  wire::JobSpec job = small_job(c.model);
  job.mutable_model()->set_dropout(c.dropout);
  job.mutable_model()->set_batch_norm(c.batch_norm);
  job.mutable_train()->set_global_batch(c.global_batch);
  const Step steps = 2 * ((c.samples + c.global_batch - 1) / c.global_batch);  // two epochs

  const TrainResult one = train(job, *dataset, even_runs(4, 1), steps);
  ASSERT_EQ(one.losses.size(), steps);
  for (const double loss : one.losses) EXPECT_TRUE(std::isfinite(loss));
  for (const uint32_t ranks : {2u, 3u, 4u}) {
    SCOPED_TRACE(ranks);
    const TrainResult other = train(job, *dataset, even_runs(4, ranks), steps);
    EXPECT_EQ(other.losses, one.losses);
    EXPECT_TRUE(other.state == one.state);
  }
  const TrainResult bucketed = train(job, *dataset, {{0, 1}, {1, 4}}, steps, 4096);
  EXPECT_EQ(bucketed.losses, one.losses);
  EXPECT_TRUE(bucketed.state == one.state);
}

INSTANTIATE_TEST_SUITE_P(
    Models, SameBits,
    ::testing::Values(Case{"Mlp", "mlp", 0, false, 20, 80},
                      Case{"MlpWithDropoutAndATail", "mlp", 0.3, false, 24, 83},
                      Case{"MlpWithBatchNorm", "mlp", 0.1, true, 24, 80},
                      Case{"Cnn", "cnn", 0, false, 20, 80},
                      Case{"CnnWithAllAndAnEmptySlot", "cnn", 0.25, true, 20, 63}),
    [](const auto& c) { return c.param.name; });

TEST(SameBitsPlanted, AnotherOrderOfSlotsGivesOtherBits) {
  // The runs (2, 2) and a tree over other groups: with 3 slots on one rank and the merge order of
  // (s0 + (s1 + s2)) instead of ((s0 + s1) + s2) the sums differ, and the test above would see it.
  const auto dataset = make_patterns(80);
  wire::JobSpec three = small_job("mlp");
  three.mutable_train()->set_slots(3);
  wire::JobSpec four = small_job("mlp");
  const TrainResult a = train(three, *dataset, even_runs(3, 1), 6);
  const TrainResult b = train(four, *dataset, even_runs(4, 1), 6);
  EXPECT_FALSE(a.state == b.state);
}

}  // namespace
}  // namespace lockstep
