#include "worker/session/record_queue.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "comm/base/limits.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/checkpoint/test_state.h"

namespace lockstep {
namespace {

wire::StepRecord record(Step step) {
  wire::StepRecord out;
  out.set_step(step);
  return out;
}

class RecordQueueTest : public ::testing::Test {
 protected:
  // One batch of one record.
  void add_batch(Step step) {
    ASSERT_TRUE(queue_.add(1, record(step)).is_ok());
    ASSERT_TRUE(queue_.flush().is_ok());
  }
  // The number of the next batch to send, 0 if there is none.
  uint64_t next() {
    auto batch = queue_.next();
    EXPECT_TRUE(batch.is_ok());
    return batch->has_value() ? (*batch)->records.batch() : 0;
  }

  TemporaryDirectory temporary_;
  std::string path_ = temporary_.path() + "/spill";
  RecordQueue queue_{path_};
};

TEST_F(RecordQueueTest, ABatchIsFullAfterItsLimitOfSteps) {
  for (int i = 0; i < limits::kRecordBatchSteps; ++i) {
    const auto full = queue_.add(1, record(i));
    ASSERT_TRUE(full.is_ok());
    EXPECT_EQ(*full, i + 1 == limits::kRecordBatchSteps);
  }
  const auto batch = queue_.next();
  ASSERT_TRUE(batch.is_ok() && batch->has_value());
  EXPECT_EQ((*batch)->records.records_size(), limits::kRecordBatchSteps);
}

TEST_F(RecordQueueTest, UnacknowledgedBatchesAreHandedOutAgainUnchangedAfterALoss) {
  for (const Step step : {0, 1, 2}) add_batch(step);
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(next(), 2u);
  ASSERT_TRUE(queue_.acknowledge(1).is_ok());
  queue_.rewind();
  EXPECT_EQ(next(), 2u);
  EXPECT_EQ(next(), 3u);
  EXPECT_EQ(next(), 0u);
  EXPECT_FALSE(queue_.empty());
  ASSERT_TRUE(queue_.acknowledge(3).is_ok());
  EXPECT_TRUE(queue_.empty());
}

TEST_F(RecordQueueTest, RecordsOfTwoGenerationsNeverShareABatch) {
  ASSERT_TRUE(queue_.add(1, record(0)).is_ok());
  ASSERT_TRUE(queue_.add(2, record(0)).is_ok());
  ASSERT_TRUE(queue_.flush().is_ok());
  EXPECT_EQ((*queue_.next())->generation, 1u);
  EXPECT_EQ((*queue_.next())->generation, 2u);
}

TEST_F(RecordQueueTest, BeyondMemoryBatchesGoToAFileAndComeBackInOrder) {
  const uint64_t count = limits::kRecordBatchesInMemory * 3;
  for (uint64_t i = 0; i < count; ++i) add_batch(i);
  EXPECT_TRUE(std::filesystem::exists(path_));
  const auto kept = queue_.unacknowledged(limits::kManifestRecordsBytes);
  ASSERT_TRUE(kept.is_ok());
  EXPECT_TRUE(kept->complete);
  ASSERT_EQ(kept->batches.size(), count);
  for (uint64_t expected = 1; expected <= count; ++expected) {
    auto batch = queue_.next();
    ASSERT_TRUE(batch.is_ok() && batch->has_value()) << expected;
    EXPECT_EQ((*batch)->records.batch(), expected);
    EXPECT_EQ((*batch)->records.records(0).step(), expected - 1);
    EXPECT_EQ((*batch)->generation, 1u);
    ASSERT_TRUE(queue_.acknowledge(expected).is_ok());
    if (expected == count / 2) add_batch(count);  // behind those in the file
  }
  EXPECT_EQ(next(), count + 1);
}

TEST_F(RecordQueueTest, OnlySoManyAreInFlight) {
  for (uint64_t i = 0; i < limits::kRecordBatchesInFlight + 3; ++i) add_batch(i);
  for (uint64_t i = 1; i <= limits::kRecordBatchesInFlight; ++i) EXPECT_EQ(next(), i);
  EXPECT_EQ(next(), 0u);
  ASSERT_TRUE(queue_.acknowledge(1).is_ok());
  EXPECT_EQ(next(), limits::kRecordBatchesInFlight + 1);
}

TEST_F(RecordQueueTest, AManifestGetsTheOpenBatchTooAndSaysWhenItCannotTakeAll) {
  add_batch(0);
  ASSERT_TRUE(queue_.add(1, record(1)).is_ok());
  const auto all = queue_.unacknowledged(1 << 20);
  ASSERT_EQ(all->batches.size(), 2u);
  EXPECT_EQ(all->batches[1].batch(), 2u);
  EXPECT_FALSE(queue_.unacknowledged(3)->complete);
}

TEST_F(RecordQueueTest, AnEvaluationClosesTheBatchOfTheRecordsBeforeItAndIsKeptAsTheyAre) {
  wire::EvalReport report;
  report.set_step(2);
  ASSERT_TRUE(queue_.add(1, record(1)).is_ok());
  ASSERT_TRUE(queue_.add_eval(1, report).is_ok());
  report.set_step(3);
  ASSERT_TRUE(queue_.add_eval(1, report).is_ok());
  const auto first = queue_.next();
  EXPECT_EQ((*first)->records.records_size(), 1);
  ASSERT_EQ((*first)->records.evals_size(), 1);
  EXPECT_EQ((*first)->records.evals(0).step(), 2u);
  EXPECT_EQ((*queue_.next())->records.evals(0).step(), 3u);
  EXPECT_FALSE(queue_.empty());
  EXPECT_EQ(queue_.unacknowledged(1 << 20)->batches.size(), 2u);
  ASSERT_TRUE(queue_.acknowledge(2).is_ok());
  EXPECT_TRUE(queue_.empty());
}

TEST_F(RecordQueueTest, AfterAClearItIsANewQueueAndTakesNothingOfTheGenerationsBefore) {
  for (uint64_t i = 0; i < limits::kRecordBatchesInMemory + 5; ++i) add_batch(i);
  ASSERT_TRUE(queue_.add(1, record(99)).is_ok());
  EXPECT_EQ(next(), 1u);
  ASSERT_TRUE(queue_.clear(3).is_ok());
  EXPECT_TRUE(queue_.empty());
  ASSERT_TRUE(queue_.add(3, record(100)).is_ok());  // the training thread did not know yet
  EXPECT_TRUE(queue_.empty());
  ASSERT_TRUE(queue_.add(4, record(7)).is_ok());
  ASSERT_TRUE(queue_.flush().is_ok());
  const auto batch = queue_.next();
  ASSERT_TRUE(batch.is_ok() && batch->has_value());
  EXPECT_EQ((*batch)->records.batch(), 1u);
  EXPECT_EQ((*batch)->records.records(0).step(), 7u);
  ASSERT_TRUE(queue_.acknowledge(1).is_ok());
  EXPECT_TRUE(queue_.empty());
}

}  // namespace
}  // namespace lockstep
