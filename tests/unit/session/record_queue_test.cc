#include "worker/session/record_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/run/checkpoint/test_state.h"

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
    queue_.add(1, record(step));
    queue_.flush();
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
    EXPECT_EQ(queue_.add(1, record(i)), i + 1 == limits::kRecordBatchSteps);
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

// It was under way when the connection was lost.
TEST_F(RecordQueueTest, AnAcknowledgementAfterALossCountsThoughNothingWasHandedOutAgain) {
  for (const Step step : {0, 1, 2}) add_batch(step);
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(next(), 2u);
  queue_.rewind();
  ASSERT_TRUE(queue_.acknowledge(2).is_ok());
  EXPECT_EQ(next(), 3u);
}

// A coordinator that was started again may repeat an older one.
TEST_F(RecordQueueTest, TheJournalsSequenceThatIsKnownNeverGoesBack) {
  for (const Step step : {0, 1}) add_batch(step);
  ASSERT_TRUE(queue_.acknowledge(1, 9).is_ok());
  ASSERT_TRUE(queue_.acknowledge(1, 7).is_ok());
  EXPECT_EQ(queue_.unacknowledged(1 << 20)->sequence, 9u);
}

TEST_F(RecordQueueTest, RecordsOfTwoGenerationsNeverShareABatch) {
  queue_.add(1, record(0));
  queue_.add(2, record(0));
  queue_.flush();
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
    if (expected == count / 2) add_batch(count);  // after those in the file
  }
  EXPECT_EQ(next(), count + 1);
}

// A run whose data need no cache has no such folder.
TEST_F(RecordQueueTest, TheFileMakesItsFolderButNotTheRunDirectory) {
  const std::string run_dir = temporary_.path() + "/run";
  std::filesystem::create_directory(run_dir);
  RecordSpill spill(run_dir + "/cache/records-worker-0");
  ASSERT_TRUE(spill.push(1, {}).is_ok());
  RecordSpill removed(temporary_.path() + "/removed/cache/records-worker-0");
  EXPECT_THAT(removed.push(1, {}), FailsWith(Code::kInternal, Names("removed/cache/records")));
  EXPECT_FALSE(std::filesystem::exists(temporary_.path() + "/removed"));
}

// A queue whose file takes a few batches, and a thread that adds one record more than fit.
class FullRecordQueueTest : public RecordQueueTest {
 protected:
  FullRecordQueueTest() {
    for (uint64_t i = 0; i < limits::kRecordBatchesInMemory; ++i) {
      small_.add(1, record(added_++));
      small_.flush();
    }
    adder_ = std::thread([this] {
      while (!is_over_) small_.add(1, record(added_++));
    });
    told_.wait(false);
  }
  ~FullRecordQueueTest() override {
    is_over_ = true;
    small_.end();
    if (adder_.joinable()) adder_.join();
  }

  std::atomic<bool> told_ = false;
  std::atomic<bool> is_over_ = false;
  std::atomic<Step> added_ = 0;
  std::string why_;
  RecordQueue small_{path_,
                     [this](const Status& why) {
                       if (!is_over_.exchange(true)) why_ = why.message();
                       told_ = true;
                       told_.notify_all();
                     },
                     4'000};
  std::thread adder_;
};

TEST_F(FullRecordQueueTest, WhoAddsWaitsUntilTheCoordinatorTakesMoreAndNothingIsLost) {
  EXPECT_THAT(why_, ::testing::HasSubstr(path_));
  Step expected = 0;
  uint64_t number = 0;
  const auto drain = [&] {
    for (;;) {
      small_.flush();
      auto batch = small_.next();
      ASSERT_TRUE(batch.is_ok());
      if (!batch->has_value()) return;
      ASSERT_EQ((*batch)->records.batch(), ++number);
      for (const auto& r : (*batch)->records.records()) ASSERT_EQ(r.step(), expected++);
      ASSERT_TRUE(small_.acknowledge(number).is_ok());
    }
  };
  drain();
  adder_.join();  // its last record found room
  drain();
  EXPECT_EQ(expected, added_);
  EXPECT_TRUE(small_.empty());
}

TEST_F(FullRecordQueueTest, AtTheEndNobodyWaits) {
  small_.end();
  adder_.join();
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
  queue_.add(1, record(1));
  const auto all = queue_.unacknowledged(1 << 20);
  ASSERT_EQ(all->batches.size(), 2u);
  EXPECT_EQ(all->batches[1].batch(), 2u);
  EXPECT_FALSE(queue_.unacknowledged(3)->complete);
}

TEST_F(RecordQueueTest, AnEvaluationClosesTheBatchOfTheRecordsBeforeItAndIsKeptAsTheyAre) {
  wire::EvalReport report;
  report.set_step(2);
  queue_.add(1, record(1));
  queue_.add_eval(1, report);
  report.set_step(3);
  queue_.add_eval(1, report);
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
  queue_.add(1, record(99));
  EXPECT_EQ(next(), 1u);
  ASSERT_TRUE(queue_.clear(3).is_ok());
  EXPECT_TRUE(queue_.empty());
  queue_.add(3, record(100));  // the training thread did not know yet
  EXPECT_TRUE(queue_.empty());
  queue_.add(4, record(7));
  queue_.flush();
  const auto batch = queue_.next();
  ASSERT_TRUE(batch.is_ok() && batch->has_value());
  EXPECT_EQ((*batch)->records.batch(), 1u);
  EXPECT_EQ((*batch)->records.records(0).step(), 7u);
  ASSERT_TRUE(queue_.acknowledge(1).is_ok());
  EXPECT_TRUE(queue_.empty());
}

}  // namespace
}  // namespace lockstep
