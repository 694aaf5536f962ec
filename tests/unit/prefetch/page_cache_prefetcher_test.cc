#include "data/prefetch/page_cache_prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "data/dataset/memory_dataset.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kSamples = 1'000;
constexpr RunShape kShape{kSamples, 10, 2};

class PageCachePrefetcherOf : public testing::Test {
 protected:
  void SetUp() override {
    dataset_ = std::move(make_memory_dataset({1, 2, 2}, std::vector<uint8_t>(kSamples * 4),
                                             std::vector<uint32_t>(kSamples)))
                   .value();
    options_ = {kShape, {1, dataset_->fingerprint(), kSamples}, 0, 10'000, {0, 2}, {}, {}};
    batches_.emplace(options_);
  }

  // Room for 12 samples ahead.
  PageCachePrefetcher warm() {
    return {dataset_->as<StoredSamples>().value(),
            options_,
            12 * 4,
            {[this] { return disk_reads_; },
             [this](const uint8_t* begin, uint64_t bytes) {
               EXPECT_EQ(bytes, 4U);
               asked_.push_back(static_cast<uint64_t>(begin - stored_sample(*dataset_, 0)) / 4);
             }}};
  }

  void batch(PageCachePrefetcher& warm, bool is_cold = false) {
    const PlannedBatch planned = *batches_->next();
    warm.before(planned);
    for (uint64_t p = planned.range.begin; p < planned.range.end; ++p)
      used_.push_back(batches_->order_of(planned.epoch).at(p));
    if (is_cold) ++disk_reads_;
    warm.after(planned);
  }

  std::unique_ptr<Dataset> dataset_;
  BatchSequenceOptions options_;
  std::optional<BatchSequence> batches_;
  uint64_t disk_reads_ = 0;
  std::vector<uint64_t> asked_;
  std::vector<uint64_t> used_;
};

TEST_F(PageCachePrefetcherOf, OfWhatIsInMemoryOnlyTheFirstBatchIsAskedFor) {
  PageCachePrefetcher ahead = warm();
  for (int i = 0; i < 500; ++i) batch(ahead);
  EXPECT_THAT(asked_, testing::ElementsAreArray(std::span(used_).first(5)));
}

TEST_F(PageCachePrefetcherOf, WhatIsNotTheNextSamplesAreAskedForInTheOrderOfTheirUse) {
  PageCachePrefetcher ahead = warm();
  batch(ahead, /*is_cold=*/true);  // 5 samples each
  used_.clear();
  asked_.clear();
  for (int i = 0; i < 20; ++i) {
    batch(ahead);
    EXPECT_EQ(asked_.size(), used_.size() + 12 - 5) << "as many ahead as there is room for";
  }
  EXPECT_TRUE(std::equal(used_.begin(), used_.end(), asked_.begin()));
}

TEST_F(PageCachePrefetcherOf, ColdBatchesAreFoundWheneverTheyCome) {
  PageCachePrefetcher ahead = warm();
  for (uint32_t i = 0; i < 1'001; ++i) batch(ahead);
  for (uint32_t i = 0; i < PageCachePrefetcher::kLookEvery; ++i) batch(ahead, /*is_cold=*/true);
  used_.clear();
  asked_.clear();
  batch(ahead);
  EXPECT_THAT(used_, testing::ElementsAreArray(std::span(asked_).first(5)));
}

TEST_F(PageCachePrefetcherOf, WhatStaysColdIsAskedForWithoutAPause) {
  PageCachePrefetcher ahead = warm();
  batch(ahead, /*is_cold=*/true);
  for (uint32_t i = 0; i < 4 * PageCachePrefetcher::kColdBatches; ++i)
    batch(ahead, /*is_cold=*/i % PageCachePrefetcher::kColdBatches == 7);
  EXPECT_EQ(asked_.size(), used_.size() + 12 - 5);
}

TEST_F(PageCachePrefetcherOf, WhatHasBecomeWarmIsNotAskedForForEver) {
  PageCachePrefetcher ahead = warm();
  batch(ahead, /*is_cold=*/true);
  for (uint32_t i = 0; i < PageCachePrefetcher::kColdBatches; ++i) batch(ahead);
  const size_t asked = asked_.size();
  for (int i = 0; i < 500; ++i) batch(ahead);
  EXPECT_EQ(asked_.size(), asked);
}

TEST_F(PageCachePrefetcherOf, TheKernelTakesTheHint) {
  const PageCachePrefetcher::Kernel kernel = PageCachePrefetcher::kernel();
  kernel.will_need(stored_sample(*dataset_, 7), 4);
  EXPECT_GE(kernel.disk_reads() + 1, 1U);
}

}  // namespace
}  // namespace lockstep::data
