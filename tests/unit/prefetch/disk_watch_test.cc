#include "data/prefetch/disk_watch.h"

#include <gtest/gtest.h>

#include <string>

#include "comm/base/file.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/cold_file.h"

namespace lockstep::data {
namespace {

class DiskWatchOf : public testing::Test {
 protected:
  // Of 128 samples: 8 pages are enough of a batch.
  void batch(uint64_t blocks_while_it_is_made = 0, uint64_t blocks_before = 0) {
    blocks_ += blocks_before;
    watch_.before();
    blocks_ += blocks_while_it_is_made;
    watch_.after(128);
  }

  uint64_t blocks_ = 1'000;  // the program itself
  DiskWatch watch_{[this] { return blocks_; }};
};

TEST_F(DiskWatchOf, FirstBatchOfTheDiskSaysSo) {
  EXPECT_FALSE(watch_.is_from_disk());
  batch(128 * 8);
  EXPECT_TRUE(watch_.is_from_disk());
}

TEST_F(DiskWatchOf, BatchesOfTheDiskAreFoundWheneverTheyCome) {
  for (int i = 0; i < 1'001; ++i) batch();
  EXPECT_FALSE(watch_.is_from_disk());
  for (uint32_t i = 0; i < DiskWatch::kLookEvery; ++i) batch(128 * 8);
  EXPECT_TRUE(watch_.is_from_disk());
}

TEST_F(DiskWatchOf, WhatElseAProcessReadsDoesNotMakeItTheDisk) {
  for (int i = 0; i < 1'000; ++i) batch(/*blocks_while_it_is_made=*/0, /*blocks_before=*/10'000);
  EXPECT_FALSE(watch_.is_from_disk());
  for (int i = 0; i < 1'000; ++i) batch(/*blocks_while_it_is_made=*/8);
  EXPECT_FALSE(watch_.is_from_disk()) << "a page a batch is none of its samples";
}

TEST_F(DiskWatchOf, SixteenthOfTheSamplesIsEnough) {
  batch(8 * 8);
  EXPECT_TRUE(watch_.is_from_disk());
}

TEST_F(DiskWatchOf, ItIsTheDiskUntilNothingWasReadForLong) {
  batch(128 * 8);
  for (uint32_t i = 0; i < 3 * DiskWatch::kWarmBatches; ++i) {
    // Once in so many batches, and between two of them.
    batch(0, i % (DiskWatch::kWarmBatches - DiskWatch::kLookEvery) == 0 ? 1 : 0);
    ASSERT_TRUE(watch_.is_from_disk()) << i;
  }
  for (uint32_t i = 0; i < DiskWatch::kWarmBatches + DiskWatch::kLookEvery; ++i) batch();
  EXPECT_FALSE(watch_.is_from_disk());
}

// Where the file system is one of memory, or a sandbox does not count, there is nothing to see.
TEST(DiskWatch, TheKernelCountsWhatIsReadFromADisk) {
  const TemporaryDirectory dir;
  const std::string path = dir.path("file");
  write_file(path, std::string(1 << 20, 'x'));
  if (!put_out_of_memory(path)) GTEST_SKIP() << path << " stays in memory";
  const uint64_t before = DiskWatch::blocks_read();
  ASSERT_EQ(read_file(path, 1 << 20)->size(), size_t{1} << 20);
  const uint64_t read = DiskWatch::blocks_read() - before;
  if (read == 0) GTEST_SKIP() << "this kernel does not count what is read from disks";
  EXPECT_GE(read, (1U << 20) / 512);
}

}  // namespace
}  // namespace lockstep::data
