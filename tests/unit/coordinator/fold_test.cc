// Folding changes what the journal holds, and nothing of what an audit says.
#include "coordinator/serve/fold.h"

#include <sys/wait.h>

#include <csignal>

#include "comm/run/job/job.pb.h"
#include "comm/run/plan/digest.h"
#include "comm/run/plan/fold_digest.h"
#include "coordinator/journal/journal_sqlite.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/coordinator/audit_world.h"

namespace lockstep::coordinator {
namespace {

// Returns the state of a run that has done `completed` steps, with checkpoints after these.
State state_with(const std::vector<Step>& checkpoints, Step completed) {
  State state;
  for (Step step : checkpoints) {
    state.checkpoints.emplace_back().step = step;
  }
  state.completed = completed;
  return state;
}

enum class Kind { kMemory, kSqlite };

class FoldTest : public AuditWorld {
 protected:
  explicit FoldTest(Kind kind = Kind::kMemory, std::unique_ptr<TemporaryDirectory> temporary =
                                                   std::make_unique<TemporaryDirectory>())
      : AuditWorld(open(kind, temporary->path())),
        temporary_(std::move(temporary)),
        directory_(temporary_->path()) {}

  static std::unique_ptr<Journal> open(Kind kind, const std::string& directory) {
    if (kind == Kind::kMemory) return std::make_unique<MemoryJournal>();
    return std::move(open_sqlite_journal(directory + "/journal.db")).value();
  }

  // Returns the blocks that were kept.
  std::vector<std::string> fold_all(const State& state) {
    std::vector<std::string> kept;
    Folder folder(*journal_, *order_of(journal_->load()->identity));
    for (int idle = 0; idle < 3;) {
      const auto outcome = folder.work(state);
      EXPECT_TRUE(outcome.is_ok()) << outcome.status().message();
      if (outcome->kept) kept.push_back(*outcome->kept);
      if (outcome->fold) commit({*outcome->fold});
      idle = outcome->kept || outcome->fold ? 0 : idle + 1;
    }
    return kept;
  }
  std::vector<std::pair<Step, Step>> folded() {
    std::vector<std::pair<Step, Step>> found;
    const auto folds = journal_->folds();
    for (const FoldEntry& fold : *folds) found.emplace_back(fold.first, fold.last);
    return found;
  }
  // All that an audit can say.
  std::string audited() {
    std::string text;
    const auto report =
        audit(*journal_, [&](const AuditedStep& step) { text += step_json(step) + "\n"; });
    EXPECT_TRUE(report.is_ok()) << report.status().message();
    return text + audit_text(*report) + audit_json(*report, {});
  }

  std::unique_ptr<TemporaryDirectory> temporary_;
  std::string directory_;
};

using Blocks = std::vector<std::pair<Step, Step>>;

class FoldInEveryJournal : public FoldTest, public ::testing::WithParamInterface<Kind> {
 protected:
  FoldInEveryJournal() : FoldTest(GetParam()) {}
};

TEST_P(FoldInEveryJournal, StepsBeforeTheOlderCheckpointAreFoldedAndTheAuditSaysTheSame) {
  row(1, 0, 1300);
  row(2, 1300, std::nullopt);
  auto records = train(*data_, 0, 2600);
  records[1200].set_skipped(true);
  report(1, {records.begin(), records.begin() + 1301});  // the last one was done again
  report(2, {records.begin() + 1300, records.end()});
  const auto batches = journal_->load()->batches;
  const std::string before = audited();
  EXPECT_TRUE(fold_all(state_with({100, 2300, 2500}, 2600)).empty());
  EXPECT_EQ(folded(), (Blocks{{0, 1000}, {1000, 1300}, {1300, 2000}}));
  EXPECT_EQ(audited(), before);
  EXPECT_EQ(journal_->load()->batches, batches);
  EXPECT_TRUE(journal_->batches(1, 0, 1300)->empty());
  EXPECT_EQ(journal_->batches(1, 1300, 1301)->at(0).records.size(), 1u);
  EXPECT_TRUE(journal_->batches(2, 0, 2000)->empty());
  EXPECT_EQ(journal_->batches(2, 2000, kNoStep)->size(), 6u);
}

TEST_P(FoldInEveryJournal, ABlockWithAWrongDeliveryKeepsItsRecordsAndTheAuditStillNamesIt) {
  row(1, 0, std::nullopt);
  auto records = train(*data_, 0, 3100);
  *records[1503].mutable_slots(1) = train(*data_, 1503, 1504, kSeed + 1)[0].slots(1);
  report(1, records);
  const std::string before = audited();
  EXPECT_THAT(before, Names("step 1504", "slot 1"));
  const auto kept = fold_all(state_with({3000, 3050}, 3100));
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_THAT(kept[0], Names("step 1504", "slot 1"));
  EXPECT_EQ(folded(), (Blocks{{0, 1000}, {2000, 3000}}));
  EXPECT_EQ(audited(), before);
}

TEST_P(FoldInEveryJournal, WhatWasSkippedByPolicyIsFoldedWithoutItsSlots) {
  commit({SkipEntry{1, 30, {1, 2}, "it killed two workers"}});
  row(2, 0, std::nullopt);
  auto records = train(*data_, 0, 1100);
  records[30].mutable_slots()->DeleteSubrange(1, 1);
  report(2, records);
  const std::string before = audited();
  State state = state_with({1000, 1050}, 1100);
  state.skips = journal_->load()->skips;
  EXPECT_TRUE(fold_all(state).empty());
  EXPECT_EQ(folded(), (Blocks{{0, 1000}}));
  EXPECT_EQ(audited(), before);
}

TEST_P(FoldInEveryJournal, ARollbackIntoAFoldLeavesTheProofOfWhatSurvives) {
  row(1, 0, std::nullopt);
  report(1, train(*data_, 0, 1200));
  commit({RollbackEntry{{500, Phase::kTrain}, "", "resume"}});
  row(2, 500, std::nullopt);
  report(2, train(*data_, 500, 1100));
  const std::string unfolded = audited();
  EXPECT_TRUE(fold_all(state_with({1000, 1100}, 1100)).empty());
  EXPECT_EQ(folded(), (Blocks{{0, 500}, {500, 1000}}));
  EXPECT_EQ(audited(), unfolded);
}

INSTANTIATE_TEST_SUITE_P(Journals, FoldInEveryJournal,
                         ::testing::Values(Kind::kMemory, Kind::kSqlite));

// This is the case before, but the fold was there first, and reaches beyond the cut.
TEST_F(FoldTest, AFoldThatWasCutProvesTheStepsBeforeTheCutAndTellsOfTheOthers) {
  row(1, 0, std::nullopt);
  report(1, train(*data_, 0, 1000));
  fold_all(state_with({1000, 1001}, 1001));
  commit({RollbackEntry{{500, Phase::kTrain}, "", "resume"}});
  row(2, 500, 700);
  report(2, train(*data_, 500, 700));
  const AuditReport found = checked();
  EXPECT_TRUE(found.is_clean()) << audit_text(found);
  EXPECT_EQ(found.steps, 700u);
  ASSERT_EQ(found.undone.size(), 1u);
  EXPECT_EQ(found.undone[0].from, 500u);
  EXPECT_EQ(found.undone[0].to, 1000u);
  fold_all(state_with({700, 701}, 700));
  EXPECT_EQ(folded(), (Blocks{{0, 1000}, {500, 700}}));  // the first one is not made again
}

TEST_F(FoldTest, AFoldWhoseHashIsNotThatOfTheOrderIsAFaultOfEverySlotInIt) {
  row(1, 0, 1000);
  report(1, train(*data_, 0, 1000));
  commit({FoldEntry{1, 0, 100, 730, 12345}});
  const AuditReport found = checked();
  EXPECT_EQ(found.faults.at(0).slot.delivery, Delivery::kBrokenFold);
  EXPECT_EQ(found.faults.back().step, 99u);
  EXPECT_EQ(found.repeated, 0u);
  EXPECT_GT(found.lost, 700u);
}

TEST_F(FoldTest, AnUnfinishedBlockOfAnOpenRowIsLeftAlone) {
  row(1, 0, std::nullopt);
  report(1, train(*data_, 0, 1000));
  EXPECT_TRUE(fold_all(state_with({999, 1000}, 1000)).empty());
  EXPECT_TRUE(folded().empty());
}

TEST_F(FoldTest, AMissingRecordKeepsItsBlock) {
  row(1, 0, std::nullopt);
  auto records = train(*data_, 0, 1100);
  records.erase(records.begin() + 700);
  report(1, records);
  EXPECT_EQ(fold_all(state_with({1000, 1100}, 1100)).size(), 1u);
  EXPECT_TRUE(folded().empty());
}

TEST(FoldBound, IsTheOlderOfTwoCheckpoints) {
  EXPECT_EQ(fold_bound(state_with({}, 5000)), 0u);
  EXPECT_EQ(fold_bound(state_with({3000}, 5000)), 0u);
  EXPECT_EQ(fold_bound(state_with({1000, 2000, 3000}, 5000)), 2000u);
  EXPECT_EQ(fold_bound(state_with({2000, 3000, 3000}, 5000)), 2000u);  // written twice
  EXPECT_EQ(fold_bound(state_with({2000, 3000}, 1900)), 1900u);        // reports are on their way
}

TEST(FoldBound, IsNowhereWhileADifferenceBetweenMembersIsOpen) {
  State state = state_with({1000, 2000}, 5000);
  state.checks.is_open = true;
  EXPECT_EQ(fold_bound(state), 0u);
}

TEST(FoldBlock, IsShorterWhereThereAreManySlots) {
  EXPECT_EQ(fold_block_steps(1), 1000u);
  EXPECT_EQ(fold_block_steps(100), 1000u);
  EXPECT_EQ(fold_block_steps(500), 200u);
  EXPECT_EQ(fold_block_steps(65'536), 100u);
}

// 600,000 samples are not put in order in one turn of the coordinator's loop.
TEST(FoldWork, IsDoneInPieces) {
  const RunOrder order{{7, "data", 60'000}, {60'000, 60'000, 2}};
  MemoryJournal journal;
  RecordsEntry batch{1, 1, 1, {}};
  for (Step step = 0; step < 10; ++step) {
    const StepPlan plan = plan_step(order.shape, step);
    const EpochOrder epoch(order.spec, plan.epoch);
    wire::StepRecord& record = batch.records.emplace_back();
    record.set_step(step);
    for (uint32_t slot = 0; slot < 2; ++slot) {
      wire::SlotDigest* digest = record.add_slots();
      digest->set_slot(slot);
      digest->set_samples(30'000);
      digest->set_digest(planned_digest(epoch, plan, slot, 2));
    }
  }
  const std::vector<JournalEntry> entries{
      batch, LedgerEntry{{1, {0, Phase::kTrain}, ResumePoint{10, Phase::kTrain}, false, "start"}}};
  ASSERT_TRUE(journal.commit(entries, 0).is_ok());
  Folder folder(journal, order);
  int turns = 0;
  std::optional<FoldEntry> fold;
  while (!fold && turns < 100) {
    const auto outcome = folder.work(state_with({10, 20}, 20));
    ASSERT_TRUE(outcome.is_ok());
    ASSERT_FALSE(outcome->kept) << *outcome->kept;
    fold = outcome->fold;
    ++turns;
  }
  EXPECT_GE(turns, 3);
  EXPECT_LE(turns, 6);
  ASSERT_TRUE(fold);
  EXPECT_EQ(fold->samples, 600'000u);
}

class FoldOnDisk : public FoldTest {
 protected:
  FoldOnDisk() : FoldTest(Kind::kSqlite) {}

  // A process that folds one block and dies.
  void fold_one_and_die(const State& state, bool is_committed) {
    journal_.reset();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto journal = open_sqlite_journal(directory_ + "/journal.db");
      if (!journal.is_ok()) ::_exit(2);
      Folder folder(**journal, *order_of((*journal)->load()->identity));
      const auto outcome = folder.work(state);
      if (!outcome.is_ok() || !outcome->fold) ::_exit(3);
      const std::vector<JournalEntry> entries{*outcome->fold};
      if (is_committed && !(*journal)->commit(entries, 0).is_ok()) ::_exit(4);
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    journal_ = open(Kind::kSqlite, directory_);
  }
};

TEST_F(FoldOnDisk, ACoordinatorThatIsKilledBetweenTwoFoldsGoesOnWhereItWas) {
  row(1, 0, std::nullopt);
  report(1, train(*data_, 0, 2600));
  const std::string before = audited();
  const State state = state_with({2500, 2550}, 2600);
  fold_one_and_die(state, false);
  EXPECT_TRUE(folded().empty());
  fold_one_and_die(state, true);
  EXPECT_EQ(folded(), (Blocks{{0, 1000}}));
  EXPECT_EQ(audited(), before);
  EXPECT_TRUE(fold_all(state).empty());
  EXPECT_EQ(folded(), (Blocks{{0, 1000}, {1000, 2000}}));
  EXPECT_EQ(audited(), before);
}

}  // namespace
}  // namespace lockstep::coordinator
