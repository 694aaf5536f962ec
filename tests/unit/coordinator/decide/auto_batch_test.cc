// train.global_batch auto: from what the workers have measured to the one number of the run.
#include "coordinator/state/auto_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/limits.h"
#include "coordinator/decide/begin_state.h"
#include "coordinator/state/identity.h"
#include "coordinator/term/term.h"
#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

constexpr uint64_t kMany = 1'000'000'000;

TEST(AutoGlobalBatch, IsSlotsTimesTheLeastRoundedDownToAPowerOfTwo) {
  EXPECT_EQ(auto_global_batch({4, kMany, 1, {128, 64, 256}}), 256u);
  EXPECT_EQ(auto_global_batch({3, kMany, 1, {100}}), 192u);
  EXPECT_EQ(auto_global_batch({4, kMany, 1, {1, 64}}), 4u);
  EXPECT_EQ(auto_global_batch({2, kMany, 1, {1 << 20}}), 2 * limits::kAutoSlotSamples);
}

TEST(AutoGlobalBatch, AnEpochKeepsTwentyStepsWhereSlotsAllowIt) {
  for (const uint64_t samples : {80u, 600u, 2'000u, 60'000u}) {
    const uint64_t batch = auto_global_batch({4, samples, 1, {1'024}});
    EXPECT_GE(samples / batch, kLeastStepsAnEpoch) << samples;
    EXPECT_LT(samples / (2 * batch), kLeastStepsAnEpoch) << samples << ": no larger one does";
  }
  EXPECT_EQ(auto_global_batch({4, 79, 1, {512}}), 4u) << "a slot needs a sample";
  EXPECT_EQ(auto_global_batch({4, 79, 2, {512}}), 8u) << "or two";
}

class NoCheckpoints final : public CheckpointShelf {
 public:
  Result<std::vector<ListedCheckpoint>> list() override { return std::vector<ListedCheckpoint>(); }
  Status verify(const ListedCheckpoint&) override { return Status::ok(); }
};

// A job that leaves the global batch open, and the coordinators that come and go over one journal.
class AutoBatch : public ::testing::Test {
 protected:
  static constexpr uint64_t kSamples = 10'000;

  static Options options_of(const std::vector<IdentityEntry>& stored) {
    Options options = small_options();
    options.facts.set_train_samples(kSamples);
    wire::JobSpec job = options.job;
    job.mutable_train()->set_global_batch(0);
    return *resolve_options(job, options.facts, stored, options.run_dir);
  }

  // Does what begin.h does, without files.
  void begin(BeginMode mode) {
    const JournalContents contents = *w.journal.load();
    w.options = options_of(contents.identity);
    const auto begun =
        begin_term(w.journal, contents, shelf_, w.options, {mode, 7, "{}", 1}, *logger_);
    ASSERT_TRUE(begun.is_ok()) << begun.status().message();
    w.state = begin_state(begun->beginning, w.now_ms, w.state.experience);
  }
  Reason join(ConnectionId c, uint64_t largest_slot) {
    wire::Register m = World::registration(static_cast<uint32_t>(c) - 1);
    m.set_largest_slot(largest_slot);
    m.mutable_facts()->set_train_samples(kSamples);
    return w.join(c, m);
  }
  uint64_t told(ConnectionId c) const {  // in the answer to its registration
    const auto sent = w.sent(c);
    return sent.empty() ? 0 : sent[0].registered().job().train().global_batch();
  }
  uint64_t stored() {
    uint64_t batch = 0;
    (void)read_number(w.journal.load()->identity, kGlobalBatchKey, &batch);
    return batch;
  }

  World w{options_of({})};
  NoCheckpoints shelf_;
  std::unique_ptr<Logger> logger_ = null_logger();
};

TEST_F(AutoBatch, TheLeastMakesTheBatchWhichIsJournalledAndEndsTheTerm) {
  begin(BeginMode::kFirst);
  EXPECT_EQ(join(1, 16), Reason::kRegistered);
  EXPECT_EQ(told(1), 0u);
  EXPECT_EQ(stored(), 0u) << "one has not spoken yet";
  EXPECT_EQ(join(2, 8), Reason::kEndedTerm);
  EXPECT_EQ(stored(), 32u);
  EXPECT_EQ(w.term_ends.size(), 1u);
  EXPECT_TRUE(w.ends.empty());
  EXPECT_TRUE(w.journal.generations().empty()) << "no step may see another batch";
  EXPECT_TRUE(w.is_durable("global_batch"));
}

TEST_F(AutoBatch, TheNextTermTellsTheBatchAndTrainsWithIt) {
  begin(BeginMode::kFirst);
  join(1, 16);
  join(2, 8);
  begin(BeginMode::kNextTerm);
  EXPECT_EQ(w.options.shape.global_batch, 32u);
  EXPECT_EQ(w.options.total_steps, 4u);
  EXPECT_EQ(join(1, 16), Reason::kRegistered);
  EXPECT_EQ(told(1), 32u);
  EXPECT_EQ(join(2, 8), Reason::kPrepared);
  w.promise(1);
  EXPECT_EQ(w.promise(2), Reason::kStarted);
  EXPECT_EQ(stored(), 32u);
}

TEST_F(AutoBatch, ACoordinatorKilledBeforeItWasJournalledAsksAgain) {
  begin(BeginMode::kFirst);
  join(1, 16);
  begin(BeginMode::kTakeOver);  // it was killed; no worker has heard a number
  EXPECT_TRUE(w.options.is_batch_open());
  EXPECT_EQ(join(1, 16), Reason::kRegistered);
  EXPECT_EQ(join(2, 4), Reason::kEndedTerm);
  EXPECT_EQ(stored(), 16u);
}

TEST_F(AutoBatch, OneThatAsksAgainWaitsForAllWorkersWhateverTheMinimum) {
  begin(BeginMode::kFirst);
  begin(BeginMode::kTakeOver);
  join(1, 16);
  EXPECT_EQ(w.wait_alive(w.options.lease_ms + 1'000), Reason::kNothingDue);
  EXPECT_EQ(stored(), 0u);
}

TEST_F(AutoBatch, ACoordinatorKilledAfterwardsAndEveryResumeUseTheJournal) {
  begin(BeginMode::kFirst);
  join(1, 16);
  join(2, 8);
  for (const BeginMode mode : {BeginMode::kTakeOver, BeginMode::kResume, BeginMode::kNextTerm}) {
    begin(mode);
    EXPECT_FALSE(w.options.is_batch_open());
    EXPECT_EQ(w.options.shape.global_batch, 32u);
    EXPECT_EQ(join(1, 2), Reason::kRegistered) << "with less room than it had";
    EXPECT_EQ(told(1), 32u);
    EXPECT_EQ(stored(), 32u);
  }
}

TEST_F(AutoBatch, AnotherNumberOnAResumeIsRefused) {
  begin(BeginMode::kFirst);
  join(1, 16);
  join(2, 8);
  wire::JobSpec job = w.options.job;
  job.mutable_train()->set_global_batch(64);
  const auto begun =
      begin_term(w.journal, *w.journal.load(), shelf_, make_options(job, w.options.facts, "/run"),
                 {BeginMode::kResume, 7, "{}", 1}, *logger_);
  EXPECT_THAT(begun, FailsWith(Code::kUsage, Names("train.global_batch", "32")));
}

TEST_F(AutoBatch, AWorkerThatHasNotMeasuredIsRefused) {
  begin(BeginMode::kFirst);
  EXPECT_EQ(join(1, 0), Reason::kEndedLayout);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 78);
}

}  // namespace
}  // namespace lockstep::coordinator
