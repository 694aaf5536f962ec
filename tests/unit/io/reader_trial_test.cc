#include "data/io/reader_trial.h"

#include <gtest/gtest.h>

namespace lockstep::data {
namespace {

// Reads nothing: what it takes is said by the test.
class Idle final : public Reader {
 public:
  explicit Idle(const char* name) : name_(name) {}
  const char* name() const override { return name_; }
  uint32_t depth() const override { return 1; }
  uint32_t in_flight() const override { return 0; }
  void submit(const Read&) override {}
  ReadDone wait() override { return {}; }
  bool has_done() override { return false; }

 private:
  const char* name_;
};

ReaderTrial trial_of(std::initializer_list<const char*> names) {
  std::vector<std::unique_ptr<Reader>> readers;
  for (const char* name : names) readers.push_back(std::make_unique<Idle>(name));
  return ReaderTrial(std::move(readers));
}

// Takes one turn after another, each of 1 MB in so many milliseconds.
void take_turns(ReaderTrial& trial, std::initializer_list<int> ms) {
  for (const int each : ms) {
    trial.submitted(1'000'000);
    trial.spent(int64_t{each} * 1'000'000);
    trial.end_turn();
  }
}

TEST(ReaderTrial, TheFastestWinsByTheBestOfItsTurns) {
  ReaderTrial trial = trial_of({"pread", "other", "mmap"});
  take_turns(trial, {10, 50, 20, 11, 5});
  EXPECT_FALSE(trial.is_over());
  EXPECT_STREQ(trial.reader().name(), "mmap");
  take_turns(trial, {20});
  ASSERT_TRUE(trial.is_over());
  EXPECT_EQ(trial.figures(), "pread 100 MB/s, other 200 MB/s, mmap 50 MB/s");
  EXPECT_STREQ(trial.winner()->name(), "other");
}

TEST(ReaderTrial, TheFirstStaysUnlessAnotherIsClearlyFaster) {
  ReaderTrial trial = trial_of({"pread", "other"});
  take_turns(trial, {100, 95, 100, 95});
  EXPECT_STREQ(trial.winner()->name(), "pread");
}

TEST(ReaderTrial, OneAloneHasWon) {
  ReaderTrial trial = trial_of({"pread"});
  EXPECT_TRUE(trial.is_over());
  EXPECT_EQ(trial.figures(), "");
  EXPECT_STREQ(trial.winner()->name(), "pread");
}

TEST(ReaderTrial, ATurnEndsAfterSoManyReadsOrBytes) {
  ReaderTrial trial = trial_of({"pread", "other"});
  for (uint64_t i = 0; i < ReaderTrial::kTurnReads; ++i) {
    EXPECT_FALSE(trial.turn_is_full());
    trial.submitted(1);
  }
  EXPECT_TRUE(trial.turn_is_full());
  trial.end_turn();
  EXPECT_FALSE(trial.turn_is_full());
  trial.submitted(ReaderTrial::kTurnBytes);
  EXPECT_TRUE(trial.turn_is_full());
}

}  // namespace
}  // namespace lockstep::data
