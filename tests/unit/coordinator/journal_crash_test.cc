// Tests what is left of a journal whose process, disk or file fails.
#include <sys/wait.h>

#include <csignal>

#include "coordinator/journal/journal_schema.h"
#include "coordinator/journal/sqlite.h"
#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/journal_world.h"

namespace lockstep::coordinator {
namespace {

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
    EXPECT_THAT(status, FailsWith(Code::kInternal, Says("full")));
    const std::vector<JournalEntry> small{IdentityEntry{"a", "b"}};
    EXPECT_EQ(journal->commit(small, 1), status);  // never tried again
  }
  EXPECT_GT(good, 0u);
  EXPECT_EQ(open()->load()->last_term, good);
}

TEST_F(JournalTest, OnlyTheNewestEventsAreKept) {
  const std::vector<JournalEntry> a_thousand(1000, EventEntry{1, "kind", "text"});
  {
    auto journal = open();
    for (uint64_t all = 0; all <= kJournalEvents; all += 1000) commit(*journal, a_thousand);
    commit(*journal, {EventEntry{1, "kind", "the last"}});
  }
  auto database = Database::open(path_);
  EXPECT_EQ(*(*database)->integer("SELECT count(*) FROM events"), kJournalEvents);
  EXPECT_EQ(*(*database)->integer("SELECT count(*) FROM events WHERE text = 'the last'"), 1u);
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
