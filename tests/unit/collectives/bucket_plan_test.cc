#include "comm/collectives/bucket_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "comm/collectives/collective.h"

namespace lockstep {
namespace {

RC_GTEST_PROP(BucketPlan, CoversTheBufferWithCutsAtTensorStartsOnly, ()) {
  std::vector<uint64_t> bounds = {0};
  for (const auto length : *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange(0, 300))) {
    bounds.push_back(bounds.back() + static_cast<uint64_t>(length) * kCutElements);
  }
  const uint64_t elements = bounds.back() + 32;
  const auto bytes = *rc::gen::inRange<uint64_t>(0, 40'000);
  const auto plan = plan_buckets(bounds, elements, bytes);
  RC_ASSERT(plan.is_ok());
  RC_ASSERT(plan->front() == 0U);
  RC_ASSERT(plan->back() == elements);
  for (size_t i = 1; i < plan->size(); ++i) {
    const uint64_t cut = (*plan)[i];
    RC_ASSERT((*plan)[i - 1] < cut);
    RC_ASSERT(cut % kCutElements == 0U);
    if (i + 1 == plan->size()) continue;
    RC_ASSERT(std::find(bounds.begin(), bounds.end(), cut) != bounds.end());
    const bool is_full = (cut - (*plan)[i - 1]) * sizeof(float) >= bytes;
    const bool is_before_the_last =
        cut == bounds[bounds.size() - 2] && (bounds.back() - cut) * sizeof(float) >= bytes;
    RC_ASSERT(is_full || is_before_the_last);
  }
}

TEST(BucketPlan, ABucketOfExactlyTheSizeIsFull) {
  const std::vector<uint64_t> bounds = {0, 64, 128, 192};
  EXPECT_EQ(*plan_buckets(bounds, 224, 64 * sizeof(float)),
            (std::vector<uint64_t>{0, 64, 128, 224}));
}

// GPT-2's token embedding, which is complete last.
TEST(BucketPlan, NothingWaitsForALastTensorThatIsABucketByItself) {
  const std::vector<uint64_t> bounds = {0, 64, 80, 208};
  EXPECT_EQ(*plan_buckets(bounds, 224, 128 * sizeof(float)), (std::vector<uint64_t>{0, 80, 224}));
  EXPECT_EQ(*plan_buckets(bounds, 224, 129 * sizeof(float)), (std::vector<uint64_t>{0, 224}))
      << "it is not one";
  const std::vector<uint64_t> in_between = {0, 64, 192, 208};
  EXPECT_EQ(*plan_buckets(in_between, 224, 128 * sizeof(float)),
            (std::vector<uint64_t>{0, 192, 224}))
      << "a large one before the last waits for the small ones before it, as ever";
}

TEST(BucketPlan, TheLastBucketHoldsStatisticsAndControl) {
  const std::vector<uint64_t> bounds = {0, 64, 128};
  const auto plan = plan_buckets(bounds, 160, 4);
  ASSERT_TRUE(plan.is_ok());
  EXPECT_EQ(*plan, (std::vector<uint64_t>{0, 64, 160}));
}

TEST(BucketPlan, ACutInsideACacheLineIsNotUsed) {
  const std::vector<uint64_t> bounds = {0, 24, 64, 96};
  EXPECT_EQ(*plan_buckets(bounds, 96, 4), (std::vector<uint64_t>{0, 64, 96}));
}

TEST(BucketPlan, NonsenseIsRefused) {
  const std::vector<uint64_t> falling = {0, 64, 32};
  const std::vector<uint64_t> beyond = {0, 640};
  EXPECT_EQ(plan_buckets(falling, 64, 4).status().code(), Code::kInternal);
  EXPECT_EQ(plan_buckets(beyond, 64, 4).status().code(), Code::kInternal);
  EXPECT_EQ(plan_buckets({}, 0, 4).status().code(), Code::kInternal);
  EXPECT_EQ(plan_buckets({}, 17, 4).status().code(), Code::kInternal);
}

}  // namespace
}  // namespace lockstep
