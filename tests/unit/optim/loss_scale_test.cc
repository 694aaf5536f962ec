#include "worker/optim/loss_scale.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "worker/optim/grad_norm.h"

namespace lockstep {
namespace {

wire::TrainSpec fp16() {
  wire::TrainSpec train;
  train.set_precision("fp16");
  train.set_loss_scale(8);
  train.set_loss_scale_growth(2);
  train.set_loss_scale_growth_every(3);
  train.set_loss_scale_backoff(0.5);
  return train;
}

TEST(LossScaler, GrowsAfterSoManyGoodStepsInARowAndFallsWithEveryOverflow) {
  LossScaler scaler(fp16());
  std::vector<float> scales;
  for (const bool is_finite : {true, true, false, true, true, true, true, true, true, false}) {
    EXPECT_EQ(scaler.update(is_finite), is_finite);
    scales.push_back(scaler.scale());
  }
  EXPECT_EQ(scales, (std::vector<float>{8, 8, 4, 4, 4, 8, 8, 8, 16, 8}));
  EXPECT_EQ(scaler.state().skipped_steps, 2);
  EXPECT_EQ(scaler.state().good_steps, 0);
  scaler.reset();
  EXPECT_EQ(scaler.scale(), 8);
  EXPECT_EQ(scaler.state().skipped_steps, 0);
}

TEST(LossScaler, LeavesToOthersWhatOverflowsWithoutAScale) {
  LossScaler scaler(fp16());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(scaler.update(false));
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_TRUE(scaler.update(false));
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_EQ(scaler.state().skipped_steps, 3);
}

TEST(LossScaler, DoesNotGrowToInfinity) {
  LossScaler scaler(fp16());
  scaler.state().scale = 0x1p127f;
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 0x1p127f);
}

TEST(LossScaler, IsOffInOtherPrecisions) {
  wire::TrainSpec train = fp16();
  train.set_precision("bf16");
  LossScaler scaler(train);
  EXPECT_FALSE(scaler.is_on());
  EXPECT_TRUE(scaler.update(false));
  EXPECT_EQ(scaler.scale(), 1);
}

TEST(AllFinite, SeesOneValueThatIsNotWhereverItStands) {
  std::vector<float> values(2 * kNormBlock + 7, std::numeric_limits<float>::max());
  EXPECT_TRUE(all_finite(values.data(), values.size()));
  for (const size_t at : {size_t{0}, size_t{kNormBlock}, values.size() - 1}) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> damaged = values;
      damaged[at] = bad;
      EXPECT_FALSE(all_finite(damaged.data(), damaged.size())) << at;
    }
  }
}

}  // namespace
}  // namespace lockstep
