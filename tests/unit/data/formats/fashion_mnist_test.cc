// Known facts of the Debian package dataset-fashion-mnist.
#include <gtest/gtest.h>

#include <filesystem>

#include "data/open/open_dataset.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

constexpr char kDirectory[] = "/usr/share/datasets/fashion-mnist";

TEST(FashionMnist, HasItsKnownCountsClassesAndStatistics) {
  if (!std::filesystem::exists(kDirectory))
    GTEST_SKIP() << kDirectory << " is not there; apt-get install dataset-fashion-mnist";
  const TemporaryDirectory cache;
  const auto train = open_dataset(spec_of(kDirectory), Split::kTrain, cache.path());
  const auto eval = open_dataset(spec_of(kDirectory), Split::kEval, cache.path());
  ASSERT_TRUE(train.is_ok()) << train.status().message();
  ASSERT_TRUE(eval.is_ok()) << eval.status().message();
  EXPECT_EQ(train.value()->samples(), 60'000U);
  EXPECT_EQ(eval.value()->samples(), 10'000U);
  EXPECT_EQ(train.value()->shape(), (SampleShape{1, 28, 28}));
  EXPECT_EQ(train.value()->classes(), 10U);
  EXPECT_EQ(eval.value()->classes(), 10U);
  // As torchvision's examples give them: 0.2860, 0.3530.
  EXPECT_NEAR(train.value()->statistics()[0].mean, 0.2860, 5e-5);
  EXPECT_NEAR(train.value()->statistics()[0].std, 0.3530, 5e-5);
  std::vector<int> counts(10);
  for (uint64_t i = 0; i < 60'000; ++i) ++counts[label_of(*train.value(), i)];
  EXPECT_EQ(counts, std::vector<int>(10, 6'000));
  // The first labels of the published set: ankle boot, T-shirt, T-shirt, dress, T-shirt.
  const std::vector<uint32_t> first = {9, 0, 0, 3, 0};
  for (uint64_t i = 0; i < first.size(); ++i) EXPECT_EQ(label_of(*train.value(), i), first[i]);
  EXPECT_EQ(train.value()->fingerprint(), "898b6971d720c74ef95b7bb7b2efe08a");
  EXPECT_EQ(eval.value()->fingerprint(), "e698c9796dfb3372c78b4a7469ba4f0b");
}

}  // namespace
}  // namespace lockstep::data
