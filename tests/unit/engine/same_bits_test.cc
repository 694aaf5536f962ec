// The promise: the same bits for any number of workers.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>

#include "comm/collectives/forwarding.h"
#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::small_job;
using testing::train;
using testing::TrainResult;

struct Case {
  std::string name;
  std::string model;
  double dropout = 0;
  bool batch_norm = false;
  uint64_t global_batch = 0;
  uint32_t samples = 0;
  std::vector<uint32_t> ranks = {2, 3, 4};
  uint32_t epochs = 2;
  uint32_t side = 12;
  std::vector<std::string> mixing = {};  // of data.transforms
};

class SameBitsOf : public ::testing::TestWithParam<Case> {};

TEST_P(SameBitsOf, ForAnyNumberOfRanksAndAnyBuckets) {
  const Case& c = GetParam();
  const auto dataset = make_patterns(c.samples, c.side);
  wire::JobSpec job = small_job(c.model);
  job.mutable_model()->set_dropout(c.dropout);
  job.mutable_model()->set_batch_norm(c.batch_norm);
  job.mutable_train()->set_global_batch(c.global_batch);
  for (const std::string& word : c.mixing) job.mutable_data()->add_transforms(word);
  const Step steps = c.epochs * ((c.samples + c.global_batch - 1) / c.global_batch);

  const TrainResult one = train(job, *dataset, even_runs(4, 1), steps);
  ASSERT_EQ(one.losses.size(), steps);
  for (const double loss : one.losses) EXPECT_TRUE(std::isfinite(loss));
  for (const uint32_t ranks : c.ranks) {
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
    Models, SameBitsOf,
    ::testing::Values(Case{"Mlp", "mlp", 0, false, 20, 80},
                      Case{"MlpWithDropoutAndATail", "mlp", 0.3, false, 24, 83},
                      Case{"MlpWithBatchNorm", "mlp", 0.1, true, 24, 80},
                      Case{"Cnn", "cnn", 0, false, 20, 80},
                      Case{"CnnWithAllAndAnEmptySlot", "cnn", 0.25, true, 20, 63},
                      Case{"CnnOnMixedImagesWithSlotsOfOneSample",
                           "cnn",
                           0,
                           false,
                           20,
                           63,
                           {2, 3, 4},
                           2,
                           12,
                           {"mixup=0.4", "cutmix"}},
                      Case{"Resnet18", "resnet18", 0.25, false, 20, 23, {2, 4}, 1},
                      Case{"Resnet50", "resnet50", 0, false, 20, 8, {4}, 1, 9}),
    [](const auto& c) { return c.param.name; });

TEST(SameBits, MixedImagesGiveOthersThanPlainOnes) {
  const auto dataset = make_patterns(80);
  wire::JobSpec job = small_job("mlp");
  const TrainResult plain = train(job, *dataset, even_runs(4, 1), 4);
  for (const char* word : {"mixup", "cutmix"}) {
    job = small_job("mlp");
    job.mutable_data()->add_transforms(word);
    EXPECT_NE(train(job, *dataset, even_runs(4, 1), 4).losses, plain.losses) << word;
  }
}

// Adds the ranks' partials from left to right instead of along the tree.
class LeftToRight final : public Forwarding<Collective> {
 public:
  LeftToRight(std::unique_ptr<Collective> inner, std::vector<GradientBuffer*> buffers)
      : Forwarding(std::move(inner)), buffers_(std::move(buffers)) {}

  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    LOCKSTEP_RETURN_IF_ERROR(Forwarding::all_reduce(tag, range));
    float* out = buffers_[rank()]->result();
    for (uint64_t i = range.begin; i < range.end; ++i) {
      out[i] = buffers_[0]->partial(0)[i];
      for (uint32_t r = 1; r < world_size(); ++r) out[i] += buffers_[r]->partial(0)[i];
    }
    return barrier(tag);  // no rank writes its partial before all have read it
  }

 private:
  std::vector<GradientBuffer*> buffers_;
};

TEST(SameBits, APlantedWrongOrderOfAdditionIsSeen) {
  const auto dataset = make_patterns(80);
  const wire::JobSpec job = small_job("mlp");
  const TrainResult right = train(job, *dataset, even_runs(4, 4), 6);
  LoopbackWorld world(job, *dataset, even_runs(4, 4));
  world.begin_generation(6, {}, [](auto inner, const auto& buffers) {
    return std::make_unique<LeftToRight>(std::move(inner), buffers);
  });
  EXPECT_FALSE(world.train_to(6).state == right.state);
}

}  // namespace
}  // namespace lockstep
