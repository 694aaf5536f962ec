// Tests what a journal says of itself when some of its bytes were changed or lost.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "coordinator/journal/journal_copy.h"
#include "coordinator/journal/journal_head.h"
#include "coordinator/journal/sqlite.h"
#include "coordinator/term/lineage.h"
#include "tests/support/fails_with.h"
#include "tests/support/sanitized.h"
#include "tests/unit/coordinator/journal_world.h"

namespace lockstep::coordinator {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A journal of many commits, as kill -9 leaves it: most of it is in the log.
class JournalDamage : public JournalTest {
 protected:
  JournalDamage() {
    const auto journal = open();
    commit(*journal, some_history());
    for (Step step = 2; step < 60; ++step) {
      commit(*journal, {step_entry(1, step, 1.5), records_entry(1, 1, step, step, step + 1)});
    }
    commit(*journal, {RollbackEntry{{50, Phase::kTrain}, "c50-1", "test"}});
    commit(*journal, {FoldEntry{1, 0, 20, 80, 7}});
    mark_ = journal->mark();
    for (const char* end : {"", "-wal"}) kept_.push_back({end, bytes_of(path_ + end)});
    head_ = bytes_of(head_path(path_));
  }

  void restore() {
    for (const auto& [end, bytes] : kept_) write_bytes(path_ + end, bytes);
    write_bytes(head_path(path_), head_);
  }
  Status verdict() {
    const auto contents = peek_journal(path_);
    if (!contents.is_ok()) return contents.status();
    if (contents->mark == mark_) return Status::ok();
    return check_lineage(*contents, {}, dir_, false);
  }

  JournalMark mark_;
  std::vector<std::pair<std::string, std::string>> kept_;
  std::string head_;
};

TEST_F(JournalDamage, WithoutDamageItIsWhole) {
  restore();
  EXPECT_TRUE(verdict().is_ok()) << verdict().message();
  EXPECT_EQ(peek_journal(path_)->mark, mark_);
  EXPECT_EQ(open()->mark(), mark_);
  EXPECT_EQ(*read_head(head_path(path_)), mark_);
}

TEST_F(JournalDamage, NoFlippedBitPassesUnseen) {
  std::mt19937 random(3);
  int known = 0;
  constexpr int kRounds = kIsSanitized ? 60 : 300;
  for (int round = 0; round < kRounds; ++round) {
    restore();
    const auto& [end, bytes] = kept_[random() % kept_.size()];
    std::string flipped = bytes;
    const size_t at = random() % flipped.size();
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << random() % 8));
    write_bytes(path_ + end, flipped);
    const Status status = verdict();
    // A flip in an unused page, or in a field that no code reads, leaves the journal whole.
    if (!status.is_ok()) ++known;
    if (status.is_ok()) {
      EXPECT_TRUE(open()->load().is_ok()) << "byte " << at << " of " << end;
    }
  }
  EXPECT_GT(known, kIsSanitized ? 0 : 100);
}

TEST_F(JournalDamage, NoCutLogPassesUnseen) {
  for (size_t tenth = 0; tenth < 10; ++tenth) {
    restore();
    write_bytes(path_ + "-wal", kept_[1].second.substr(0, kept_[1].second.size() * tenth / 10));
    const auto contents = peek_journal(path_);
    const bool is_new = contents.is_ok() && contents->mark.sequence == 0;
    if (is_new) continue;  // as a deleted one: the checkpoints tell
    EXPECT_THAT(verdict(), FailsWith(Code::kBadData)) << tenth;
  }
}

TEST_F(JournalDamage, AnEditedRowIsKnown) {
  for (const char* edit :
       {"UPDATE steps SET loss = 0.25 WHERE step = 3", "DELETE FROM events",
        "INSERT INTO settings VALUES('colour', '9')", "UPDATE checkpoints SET state = 1"}) {
    restore();
    {
      auto database = Database::open(path_);
      ASSERT_TRUE(database.is_ok());
      ASSERT_TRUE((*database)->execute(edit).is_ok()) << edit;
    }
    const bool changes_nothing = verdict().is_ok();
    EXPECT_FALSE(changes_nothing) << edit;
    EXPECT_THAT(open_sqlite_journal(path_), FailsWith(Code::kBadData, Names(path_))) << edit;
  }
}

TEST_F(JournalDamage, ACopyGoesOnAsTheSameLineageAndAnotherFileNever) {
  restore();
  ASSERT_TRUE(copy_journal(path_, dir_ + "/journal-7.db", read_head(head_path(path_))).is_ok());
  const auto copy = open_sqlite_journal(dir_ + "/journal-7.db");
  ASSERT_TRUE(copy.is_ok()) << copy.status().message();
  EXPECT_EQ((*copy)->mark(), mark_);
  commit(**copy, {TermEntry{7, 1, "{}"}});
  EXPECT_EQ((*copy)->mark().sequence, mark_.sequence + 1);
  // The first journal, now an older one.
  EXPECT_THAT(check_lineage(*peek_journal(path_), {}, dir_, false), FailsWith(Code::kBadData));

  const auto other = open_sqlite_journal(dir_ + "/other.db");
  EXPECT_NE((*other)->mark().lineage_id, mark_.lineage_id);
}

TEST_F(JournalDamage, ACopyIsWholeWhateverFileSystemItsSourceLiesOnAndWhoeverMayReadIt) {
  restore();
  std::string elsewhere = "/dev/shm/lockstep-journal-XXXXXX";  // no file system of disks
  ASSERT_NE(::mkdtemp(elsewhere.data()), nullptr);
  for (const auto& [end, bytes] : kept_) write_bytes(elsewhere + "/journal.db" + end, bytes);
  for (const std::string& from : {path_, elsewhere + "/journal.db"}) {
    const auto rights = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write |
                        std::filesystem::perms::group_read;
    std::filesystem::permissions(from, rights);
    const std::string to = dir_ + "/journal-8.db";
    ASSERT_TRUE(copy_journal(from, to, mark_).is_ok()) << from;
    EXPECT_EQ(std::filesystem::status(to).permissions(), rights) << from;
    EXPECT_EQ(peek_journal(to)->mark, mark_) << from;
  }
  std::filesystem::remove_all(elsewhere);
}

TEST_F(JournalDamage, TheDigestTellsTwoHistoriesOfOneLengthApart) {
  restore();
  auto forked = peek_journal(path_);
  forked->head->digest += 1;
  EXPECT_THAT(check_lineage(*forked, {}, dir_, false), FailsWith(Code::kBadData));
}

TEST_F(JournalDamage, AHeadThatCannotBeReadTellsNothing) {
  for (const std::string& text : {std::string(), std::string("lockstep journal 1 x 1 1 1 1\n"),
                                  head_.substr(0, head_.find('\n') - 3), std::string(4096, 'x')}) {
    restore();
    write_bytes(head_path(path_), text);
    EXPECT_FALSE(read_head(head_path(path_)).has_value());
    EXPECT_TRUE(verdict().is_ok());
  }
}

}  // namespace
}  // namespace lockstep::coordinator
