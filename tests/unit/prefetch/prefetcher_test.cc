#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "data/prefetch/disk_watch.h"
#include "data/prefetch/make_prefetcher.h"
#include "data/prefetch/prefetch_policy.h"
#include "data/prefetch/sample_buffer.h"
#include "tests/support/fails_with.h"
#include "tests/unit/data/support/cold_file.h"
#include "tests/unit/data/support/file_dataset.h"

namespace lockstep::data {
namespace {

using testing::HasSubstr;

constexpr uint64_t kFileSamples = 200;
constexpr RunShape kFileShape{kFileSamples, 10, 2};  // 5 samples a batch

class PrefetcherOf : public testing::Test {
 protected:
  void start(const std::string& reader, uint64_t mib = 1, const DiskWatch::BlocksFn& blocks = {}) {
    wire::DataSpec data;
    data.set_reader(reader);
    data.set_read_ahead_mb(mib);
    prefetcher_.reset();  // which uses the policy
    policy_.emplace(
        data, [this](const std::string& note) { notes_.push_back(note); },
        blocks ? blocks : [this] { return blocks_; });
    auto made = make_prefetcher(*dataset_, options_, &*policy_);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    prefetcher_ = std::move(*made);
  }

  // Takes the next batch as a loader takes its samples, and checks that they belong to its place in
  // the order. Returns whether they were read ahead.
  bool batch(uint64_t blocks = 0) {
    const PlannedBatch planned = *batches_->next();
    prefetcher_->before(planned);
    blocks_ += blocks;
    const BufferedBatch ahead = prefetcher_->buffered();
    std::vector<uint8_t> own;
    for (uint64_t i = 0; i < planned.range.size(); ++i) {
      const uint64_t sample = batches_->order_of(planned.epoch).at(planned.range.begin + i);
      if (ahead.buffer == nullptr) {
        const FileExtent extent = *dataset_->extent(sample);
        own.resize(extent.bytes);
        EXPECT_TRUE(read_extent(extent, own.data()).is_ok());
        continue;
      }
      const auto held = ahead.buffer->take(ahead.first + i, own);
      EXPECT_TRUE(held.is_ok()) << held.status().message();
      if (!held.is_ok()) break;
      EXPECT_EQ(std::string(held->bytes().begin(), held->bytes().end()), dataset_.bytes_of(sample))
          << "sample " << i << " of slot " << planned.slot << " of step " << planned.step;
    }
    prefetcher_->after(planned);
    return ahead.buffer != nullptr;
  }

  static std::vector<uint64_t> sizes() {
    std::vector<uint64_t> all;
    for (uint64_t i = 0; i < kFileSamples; ++i) all.push_back(1'000 + 37 * i);
    return all;
  }

  const FileDataset dataset_{sizes()};
  const BatchSequenceOptions options_{kFileShape, {7, "data", kFileSamples}, 3, 10'000, {0, 2}, {},
                                      {}};
  std::optional<BatchSequence> batches_{options_};
  uint64_t blocks_ = 0;
  std::vector<std::string> notes_;
  std::optional<PrefetchPolicy> policy_;
  std::unique_ptr<Prefetcher> prefetcher_;
};

TEST_F(PrefetcherOf, AutoDataInMemoryNothingIsReadAhead) {
  start("auto");
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(batch());
  EXPECT_EQ(policy_->figures().reads, 0U);
  EXPECT_EQ(policy_->figures().reader, "on_use");
  EXPECT_TRUE(notes_.empty());
}

TEST_F(PrefetcherOf, AutoDataOnADiskIsReadAheadFromTheBatchAtWhichThatIsSeen) {
  start("auto");
  EXPECT_FALSE(batch());
  for (uint32_t i = 0; i < DiskWatch::kLookEvery - 2; ++i) EXPECT_FALSE(batch());
  EXPECT_FALSE(batch());  // slot 0 of its step
  EXPECT_FALSE(batch(/*blocks=*/1'000));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(batch());
  EXPECT_GE(policy_->figures().reads, 500U);
  ASSERT_FALSE(notes_.empty());
  EXPECT_THAT(notes_.back(), HasSubstr("data.reader auto: " + policy_->figures().reader));
}

// Where the file system is one of memory, or a sandbox does not count, there is nothing to see.
TEST_F(PrefetcherOf, AutoDataThatTheKernelHasToFetchIsReadAhead) {
  if (!put_out_of_memory(dataset_->extent(0)->path)) GTEST_SKIP() << "the data stay in memory";
  start("auto", 1, DiskWatch::blocks_read);
  const uint64_t before = DiskWatch::blocks_read();
  EXPECT_FALSE(batch());
  if (DiskWatch::blocks_read() == before) GTEST_SKIP() << "this kernel does not count";
  EXPECT_TRUE(batch());
}

TEST_F(PrefetcherOf, AutoDataThatHasComeIntoMemoryIsReadWhenItIsUsedUntilItIsOnADiskAgain) {
  start("auto");
  batch(/*blocks=*/1'000);
  uint32_t ahead = 0;
  while (batch()) ASSERT_LE(++ahead, 2 * DiskWatch::kWarmBatches);
  EXPECT_GE(ahead, DiskWatch::kWarmBatches);
  EXPECT_EQ(policy_->figures().reader, "on_use");
  EXPECT_EQ(policy_->figures().ahead_bytes, 0U);
  const size_t said = notes_.size();
  for (uint32_t i = 0; i < DiskWatch::kLookEvery; ++i) batch(/*blocks=*/1'000);
  EXPECT_TRUE(batch());
  EXPECT_EQ(notes_.size(), said) << "what is fastest is measured once";
}

TEST_F(PrefetcherOf, ReaderThatIsNamedReadsAheadFromTheFirstBatchForEver) {
  for (const std::string reader : {"mmap", "pread"}) {
    start(reader);
    batches_.emplace(options_);
    for (int i = 0; i < 400; ++i) ASSERT_TRUE(batch()) << reader;
  }
}

TEST_F(PrefetcherOf, AutoDataGoesOnWithoutWhatThereIsNoMemoryFor) {
  start("auto", /*mib=*/uint64_t{1} << 40);  // no machine has this
  batch(/*blocks=*/1'000);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(batch(/*blocks=*/1'000));
  EXPECT_THAT(notes_, testing::ElementsAre(Advises("data.read_ahead_mb")));
}

TEST_F(PrefetcherOf, WhoWaitsIsWokenByItsEndAlsoWhereReadingAheadBeganLater) {
  start("auto");
  batch(/*blocks=*/1'000);
  ASSERT_TRUE(batch());
  Status told;
  std::thread waiter([&] {
    std::vector<uint8_t> own;
    told = prefetcher_->buffered().buffer->take(1'000'000, own).status();
  });
  prefetcher_->stop();
  waiter.join();
  EXPECT_EQ(told.code(), Code::kAborted);
}

}  // namespace
}  // namespace lockstep::data
