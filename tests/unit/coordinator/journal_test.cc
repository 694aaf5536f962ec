#include "coordinator/journal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "comm/base/limits.h"
#include "coordinator/journal_memory.h"
#include "coordinator/journal_sqlite.h"
#include "coordinator/sqlite.h"

namespace lockstep::coordinator {
namespace {

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    char name[] = "/tmp/lockstep-journal-XXXXXX";
    dir_ = ::mkdtemp(name);
    path_ = dir_ + "/journal.db";
  }
  ~JournalTest() override { std::filesystem::remove_all(dir_); }

  std::unique_ptr<Journal> open(SqliteJournalOptions options = {}) {
    auto journal = open_sqlite_journal(path_, options);
    EXPECT_TRUE(journal.is_ok()) << journal.status().message();
    return std::move(journal).value();
  }

  std::string dir_;
  std::string path_;
};

StepEntry step_entry(Generation generation, Step step, double loss) {
  StepEntry entry;
  entry.generation = generation;
  entry.step = step;
  entry.loss = loss;
  entry.samples = 4;
  entry.common_hash = ~0ULL - step;  // uses all bits
  return entry;
}

CheckpointEntry checkpoint(Step step, Generation generation) {
  CheckpointEntry entry;
  entry.name = "c" + std::to_string(step) + "-" + std::to_string(generation);
  entry.step = step;
  entry.generation = generation;
  return entry;
}

std::string start_of(MemberId writer) {
  wire::Start start;
  start.set_writer(writer);
  return start.SerializeAsString();
}

std::vector<JournalEntry> some_history() {
  RecordsEntry batch{1, 2, 1, {}};
  batch.records.emplace_back().set_step(0);
  batch.records.emplace_back().set_step(1);
  return {IdentityEntry{"seed", "7"},
          TermEntry{1, 99, "{}"},
          MemberEntry{2, 1, "n", 0, 42},
          GenerationEntry{1, 1, GenerationState::kPrepared, {2}, {}},
          GenerationEntry{1, 1, GenerationState::kStarted, {}, start_of(2)},
          GenerationEntry{2, 1, GenerationState::kPlanned, {2, 3}, start_of(3)},
          SettingEntry{"workers", "3"},
          SettingEntry{"other", "1"},
          SettingEntry{"other", ""},
          SlotMapEntry{1, {2}, {{0, 4}}},
          LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, "start"}},
          batch,
          step_entry(1, 0, 2.5),
          step_entry(1, 1, 2.25),
          EvalEntry{1, 2, 0, 10, 9, 0.5},
          checkpoint(1, 1),
          checkpoint(2, 1),
          CheckEntry{1, 1, true, {}, 0, false},
          CheckEntry{1, 2, false, "n", 3, false},
          RecordsEntry{1, 2, 2, {}},
          EventEntry{1, "kind", "text"}};
}

void expect_some_history(Journal& journal) {
  const auto contents = journal.load();
  ASSERT_TRUE(contents.is_ok()) << contents.status().message();
  EXPECT_EQ(contents->identity, (std::vector<IdentityEntry>{{"seed", "7"}}));
  EXPECT_EQ(contents->last_term, 1u);
  EXPECT_EQ(contents->last_member, 2u);
  EXPECT_EQ(contents->last_generation, 2u);
  ASSERT_EQ(contents->members.size(), 1u);
  EXPECT_EQ(contents->members[0].pid, 42u);
  ASSERT_EQ(contents->generations.size(), 2u);
  EXPECT_EQ(contents->generations[0].state, GenerationState::kStarted);
  EXPECT_EQ(contents->generations[0].start, start_of(2));
  EXPECT_EQ(contents->generations[0].members, (std::vector<MemberId>{2}));
  EXPECT_EQ(contents->generations[1].state, GenerationState::kPlanned);
  EXPECT_EQ(contents->generations[1].start, start_of(3));
  EXPECT_EQ(contents->generations[1].members, (std::vector<MemberId>{2, 3}));
  EXPECT_EQ(contents->batches, (std::map<MemberId, uint64_t>{{2, 2}}));
  EXPECT_EQ(contents->settings, (std::map<std::string, std::string>{{"workers", "3"}}));
  ASSERT_EQ(contents->ledger.size(), 1u);
  EXPECT_FALSE(contents->ledger[0].last.has_value());
  EXPECT_EQ(contents->checkpoints.size(), 2u);
  EXPECT_EQ(contents->evals.at(0).correct, 9u);
  ASSERT_EQ(contents->checks.size(), 2u);
  EXPECT_TRUE(contents->checks[0].agreed && !contents->checks[0].rolled_back);
  EXPECT_EQ(contents->checks[1].step, 2u);
  EXPECT_FALSE(contents->checks[1].agreed || contents->checks[1].rolled_back);
  EXPECT_EQ(contents->checks[1].node, "n");
  EXPECT_EQ(contents->checks[1].local_rank, 3u);
  std::vector<StepEntry> steps;
  ASSERT_TRUE(journal.visit_steps(0, 10, [&](const StepEntry& s) { steps.push_back(s); }).is_ok());
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].loss, 2.25);
  EXPECT_EQ(steps[1].common_hash, ~0ULL - 1);
  EXPECT_EQ(journal.batches(1, 1, 2)->size(), 1u);
  EXPECT_EQ(journal.batches(1, 2, 9)->size(), 0u);
  EXPECT_EQ(journal.batches(1, 0, kNoStep)->size(), 1u);
}

TEST_F(JournalTest, WhatWasCommittedIsThereAfterReopening) {
  ASSERT_TRUE(open()->commit(some_history(), 5).is_ok());
  expect_some_history(*open());
}

TEST_F(JournalTest, TheMemoryJournalRemembersTheSame) {
  MemoryJournal journal;
  ASSERT_TRUE(journal.commit(some_history(), 5).is_ok());
  expect_some_history(journal);
}

TEST_F(JournalTest, ABatchIsFoundByEveryStepInIt) {
  const auto check = [](Journal& journal) {
    RecordsEntry batch{1, 2, 1, {}};
    for (int i = 0; i < limits::kRecordBatchSteps; ++i) {
      batch.records.emplace_back().set_step(static_cast<Step>(50 + i));
    }
    ASSERT_TRUE(journal.commit(std::vector<JournalEntry>{batch}, 0).is_ok());
    for (Step step : {50u, 100u, 149u}) {
      EXPECT_EQ(journal.batches(1, step, step + 1)->size(), 1u) << step;
    }
    EXPECT_EQ(journal.batches(1, 49, 50)->size(), 0u);
    EXPECT_EQ(journal.batches(1, 150, kNoStep)->size(), 0u);
    EXPECT_EQ(journal.batches(2, 0, kNoStep)->size(), 0u);
  };
  check(*open());
  MemoryJournal memory;
  check(memory);
}

TEST_F(JournalTest, WhatAGenerationBeganWithStaysUntilItIsOver) {
  const auto check = [](Journal& journal) {
    ASSERT_TRUE(journal.commit(some_history(), 5).is_ok());
    const auto change = [&](Generation generation, GenerationState state) {
      const std::vector<JournalEntry> entries{GenerationEntry{generation, 1, state, {}, {}}};
      ASSERT_TRUE(journal.commit(entries, 6).is_ok());
    };
    change(2, GenerationState::kStarted);
    EXPECT_EQ(journal.load()->generations.at(1).start, start_of(3));
    change(1, GenerationState::kClosed);
    EXPECT_EQ(journal.load()->generations.at(0).start, "");
  };
  check(*open());
  MemoryJournal memory;
  check(memory);
}

TEST_F(JournalTest, TheTimeOfATermLastsUntilItsLastCommit) {
  const auto check = [](Journal& journal) {
    const auto commit = [&](JournalEntry entry, int64_t wall_ms) {
      const std::vector<JournalEntry> entries{std::move(entry)};
      ASSERT_TRUE(journal.commit(entries, wall_ms).is_ok());
    };
    commit(TermEntry{1, 1, "{}"}, 1000);
    commit(EventEntry{}, 1700);
    commit(TermEntry{2, 1, "{}"}, 5000);
    commit(EventEntry{}, 5030);
    EXPECT_EQ(journal.load()->wall_ms, 730);
    commit(TermEntry{3, 1, "{}"}, 9000);
    commit(EventEntry{}, 8000);  // the clock was set back
    EXPECT_EQ(journal.load()->wall_ms, 730);
  };
  check(*open());
  MemoryJournal memory;
  check(memory);
}

TEST_F(JournalTest, ARollbackCutsLedgerCheckpointsEvalsAndSteps) {
  const auto check = [](Journal& journal) {
    ASSERT_TRUE(journal.commit(some_history(), 5).is_ok());
    const std::vector<JournalEntry> rollback{RollbackEntry{{1, Phase::kTrain}, "c1-1", "resume"}};
    ASSERT_TRUE(journal.commit(rollback, 6).is_ok());
    const auto contents = journal.load();
    ASSERT_TRUE(contents.is_ok());
    EXPECT_EQ(contents->ledger.at(0).last->step, 1u);
    EXPECT_EQ(contents->checkpoints.at(0).state, CheckpointState::kComplete);
    EXPECT_EQ(contents->checkpoints.at(1).state, CheckpointState::kRolledBack);
    EXPECT_TRUE(contents->evals.empty());
    ASSERT_EQ(contents->checks.size(), 2u);
    EXPECT_FALSE(contents->checks[0].rolled_back);
    EXPECT_TRUE(contents->checks[1].rolled_back);
    // Generation 2 redoes step 1 with its own record.
    const std::vector<JournalEntry> redo{
        LedgerEntry{{2, {1, Phase::kTrain}, std::nullopt, false, "resume"}}, step_entry(2, 1, 9.0)};
    ASSERT_TRUE(journal.commit(redo, 7).is_ok());
    std::vector<double> losses;
    (void)journal.visit_steps(0, 9, [&](const StepEntry& s) { losses.push_back(s.loss); });
    EXPECT_EQ(losses, (std::vector<double>{2.5, 9.0}));
  };
  check(*open());
  MemoryJournal memory;
  check(memory);
}

TEST_F(JournalTest, AKillBetweenCommitsLosesNothingCommitted) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto journal = open_sqlite_journal(path_);
    if (!journal.is_ok()) ::_exit(2);
    if (!(*journal)->commit(some_history(), 1).is_ok()) ::_exit(3);
    ::kill(::getpid(), SIGKILL);  // no destructor, no checkpoint of the write-ahead log
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  expect_some_history(*open());
}

TEST_F(JournalTest, AKillInTheMiddleOfManyCommitsLeavesAPrefix) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto journal = open_sqlite_journal(path_);
    if (!journal.is_ok()) ::_exit(2);
    std::vector<JournalEntry> first{
        LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, "start"}}};
    if (!(*journal)->commit(first, 1).is_ok()) ::_exit(3);
    for (Step step = 0;; step += 2) {  // two steps a commit: never one of them alone
      const std::vector<JournalEntry> pair{step_entry(1, step, 1), step_entry(1, step + 1, 1)};
      if (!(*journal)->commit(pair, 1).is_ok()) ::_exit(4);
      if (::write(pipe_fds[1], &step, sizeof(step)) != sizeof(step)) ::_exit(5);
    }
  }
  Step acknowledged = 0;
  while (acknowledged < 60) {
    ASSERT_EQ(::read(pipe_fds[0], &acknowledged, sizeof(acknowledged)),
              static_cast<ssize_t>(sizeof(acknowledged)));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  Step count = 0;
  auto journal = open();
  ASSERT_TRUE(
      journal->visit_steps(0, 1 << 20, [&](const StepEntry& s) { EXPECT_EQ(s.step, count++); })
          .is_ok());
  EXPECT_EQ(count % 2, 0u);
  EXPECT_GE(count, acknowledged + 2);
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
}

TEST_F(JournalTest, AFullDiskIsAnErrorThatStaysAndLosesNothing) {
  uint64_t good = 0;
  {
    auto journal = open({.max_pages = 60});
    Status status;
    while (status.is_ok() && good < 10'000) {
      const std::vector<JournalEntry> entries{EventEntry{1, "kind", std::string(2000, 'x')},
                                              TermEntry{good + 1, 1, "{}"}};
      status = journal->commit(entries, 1);
      if (status.is_ok()) ++good;
    }
    EXPECT_EQ(status.code(), Code::kInternal);
    EXPECT_NE(status.message().find("full"), std::string::npos) << status.message();
    const std::vector<JournalEntry> small{IdentityEntry{"a", "b"}};
    EXPECT_EQ(journal->commit(small, 1), status);  // never tried again
  }
  EXPECT_GT(good, 0u);
  EXPECT_EQ(open()->load()->last_term, good);
}

TEST_F(JournalTest, ASecondConnectionIsRefused) {
  const auto first = open();
  const auto second = open_sqlite_journal(path_);
  EXPECT_EQ(second.status().code(), Code::kUsage) << second.status().message();
}

TEST_F(JournalTest, NoSharedMemoryFileIsNeeded) {
  const auto journal = open();
  ASSERT_TRUE(journal->commit(some_history(), 1).is_ok());
  EXPECT_TRUE(std::filesystem::exists(path_ + "-wal"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "-shm"));
}

TEST_F(JournalTest, AnotherVersionIsRefused) {
  open();
  {
    auto database = Database::open(path_);
    ASSERT_TRUE((*database)->execute("PRAGMA user_version=9").is_ok());
  }
  EXPECT_EQ(open_sqlite_journal(path_).status().code(), Code::kUsage);
}

}  // namespace
}  // namespace lockstep::coordinator
