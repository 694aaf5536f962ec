// A coordinator reads little of a long run: the summaries of closed pieces, and the rows of the
// newest steps. With LOCKSTEP_LONG_RUN=DIR and LOCKSTEP_LONG_RUN_STEPS=N the first test leaves a
// run of N steps in DIR, for tests/bench/long_run.py.
#include "tests/support/long_run.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "coordinator/journal/journal_chain.h"
#include "coordinator/journal/journal_head.h"
#include "coordinator/report/ended_run.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/sanitized.h"
#include "tests/unit/coordinator/journal_world.h"

namespace lockstep::coordinator {
namespace {

class LongRun : public JournalTest {
 protected:
  Result<Begun> begin(BeginMode mode) {
    auto seat = Seat::take({dir_, "", mode == BeginMode::kTakeOver, 0});
    if (!seat.is_ok()) return seat.status();
    return begin_run(dir_, mode, **seat, SystemClock(), *null_logger());
  }
  // Edits as an older Lockstep or a stranger would: no trigger counts it.
  void edit(const std::string& sql) {
    const auto database = Database::open(path_);
    ASSERT_TRUE((*database)->execute(sql).is_ok()) << sql;
  }
  // Commits of some steps each, as a run has them.
  static void train(Journal& journal, Step from, Step to, Generation generation = 1) {
    for (Step first = from; first < to; first += 2'500) {
      std::vector<JournalEntry> entries;
      for (Step step = first; step < std::min<Step>(first + 2'500, to); ++step)
        entries.push_back(long_run_step(step, generation));
      commit(journal, entries);
    }
  }
  static LedgerEntry row(Generation generation, Step first) {
    return {{generation, {first, Phase::kTrain}, std::nullopt, false, "test"}};
  }
  static StepTotals totals_of(Journal& journal, Step end) {
    StepTotals totals;
    EXPECT_TRUE(
        journal.visit_steps(0, end, [&](const StepEntry& step) { totals.add(step); }).is_ok());
    return totals;
  }
  static std::vector<Step> ends_of(Journal& journal) {
    std::vector<Step> ends;
    const auto pieces = journal.pieces();
    EXPECT_TRUE(pieces.is_ok()) << pieces.status().message();
    for (const StepPiece& piece : *pieces) ends.push_back(piece.last);
    return ends;
  }
};

// Makes the journal as the Lockstep before summaries wrote it.
void make_version_6(const std::string& path) {
  const auto opened = Database::open(path);
  Database& database = **opened;
  {
    const auto chain = std::move(JournalChain::open(database)).value();
    ASSERT_TRUE(chain->watch().is_ok());
    ASSERT_TRUE(database.execute("BEGIN; DELETE FROM step_pieces").is_ok());
    ASSERT_TRUE(chain->advance().is_ok());
    ASSERT_TRUE(database.execute("COMMIT").is_ok());
  }
  ASSERT_TRUE(database.execute("DROP TABLE step_pieces; PRAGMA user_version=6").is_ok());
  std::filesystem::remove(head_path(path));
}

void expect_same_curves(const Curves& got, const Curves& want) {
  EXPECT_EQ(got.width(), want.width());
  ASSERT_EQ(got.bins().size(), want.bins().size());
  for (size_t i = 0; i < want.bins().size(); ++i) {
    CurveBin a = got.bins()[i];
    const CurveBin& b = want.bins()[i];
    EXPECT_NEAR(a.loss_sum, b.loss_sum, 1e-9) << "bin " << i;  // the order of additions differs
    a.loss_sum = b.loss_sum;
    EXPECT_EQ(a, b) << "bin " << i;
  }
}

TEST_F(LongRun, BeginsFromSummariesAsFromAllItsSteps) {
  const char* steps_text = std::getenv("LOCKSTEP_LONG_RUN_STEPS");
  const char* kept = std::getenv("LOCKSTEP_LONG_RUN");
  if (steps_text != nullptr && kept != nullptr) {
    make_long_run(kept, std::strtoull(steps_text, nullptr, 10));
    if (std::getenv("LOCKSTEP_LONG_RUN_VERSION_6") != nullptr)
      make_version_6(std::string(kept) + "/journal.db");
    return;
  }
  constexpr Step kSteps = 23'210;
  make_long_run(dir_, kSteps);
  const auto begun = begin(BeginMode::kTakeOver);
  ASSERT_TRUE(begun.is_ok()) << begun.status().message();
  EXPECT_EQ(begun->term.beginning.completed, kSteps);
  EXPECT_EQ(begun->history->lines(), kSteps);
  RunStats all;
  ASSERT_TRUE(begun->journal->visit_steps(0, kNoStep, [&](const StepEntry& step) { all.add(step); })
                  .is_ok());
  const RunStats& stats = begun->term.stats;
  expect_same_curves(stats.curves(), all.curves());
  EXPECT_EQ(stats.useful_seconds(), all.useful_seconds());
  EXPECT_EQ(stats.samples_per_second(), all.samples_per_second());
  EXPECT_EQ(stats.steady_samples_per_second(), all.steady_samples_per_second());
  EXPECT_EQ(stats.last().step, all.last().step);
}

// Bytes that this process has read.
uint64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string word;
  uint64_t value = 0;
  io >> word >> value;  // rchar
  return value;
}

struct Reading {
  uint64_t files = 0;  // bytes of journal and history
  uint64_t take_over = 0;
  uint64_t resume = 0;
  uint64_t report = 0;
};

Reading reading_of(Step steps) {
  TemporaryDirectory temporary;
  const std::string dir = temporary.path();
  make_long_run(dir, steps);
  Reading reading;
  reading.files = std::filesystem::file_size(dir + "/journal.db") +
                  std::filesystem::file_size(dir + "/history.jsonl");
  const auto counted = [](const std::function<void()>& read) {
    const uint64_t before = bytes_read();
    read();
    return bytes_read() - before;
  };
  const auto begin = [&dir](BeginMode mode) {
    const auto seat = Seat::take({dir, "", mode == BeginMode::kTakeOver, 0});
    const auto begun = begin_run(dir, mode, **seat, SystemClock(), *null_logger());
    EXPECT_TRUE(begun.is_ok()) << begun.status().message();
  };
  reading.report = counted([&] { EXPECT_TRUE(read_ended_run(dir).is_ok()); });
  reading.take_over = counted([&] { begin(BeginMode::kTakeOver); });
  reading.resume = counted([&] { begin(BeginMode::kResume); });
  return reading;
}

// Both have as many steps after their last closed piece.
TEST_F(LongRun, ATermReadsLittleMoreOfALongerRun) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer changes no count of bytes that are read";
  const Reading some = reading_of(45'000);
  const Reading more = reading_of(95'000);
  for (const uint64_t read : {some.take_over, some.resume, some.report})
    ASSERT_GT(read, 0U) << "what a process reads is not counted here";
  const uint64_t tenth = (more.files - some.files) / 10;
  EXPECT_LT(more.take_over, some.take_over + tenth);
  EXPECT_LT(more.resume, some.resume + tenth);
  EXPECT_LT(more.report, some.report + tenth);
}

TEST_F(LongRun, DamageInAClosedPieceIsFoundByWhoeverReadsIt) {
  make_long_run(dir_, 12'000);
  edit("UPDATE steps SET loss = 0.5 WHERE step = 4321");
  EXPECT_TRUE(peek_journal(path_, JournalCheck::kOpenPart).is_ok());
  EXPECT_THAT(peek_journal(path_), FailsWith(Code::kBadData, Names(path_)));
  const auto journal = read_sqlite_journal(path_, JournalCheck::kOpenPart);
  ASSERT_TRUE(journal.is_ok());
  const auto nothing = [](const StepEntry&) {};
  EXPECT_TRUE((*journal)->visit_steps(10'000, kNoStep, nothing).is_ok());
  EXPECT_THAT((*journal)->visit_steps(9'999, kNoStep, nothing),
              FailsWith(Code::kBadData, Names("steps 1 to 10000")));
}

TEST_F(LongRun, DamageElsewhereIsFoundWhenItIsOpened) {
  make_long_run(dir_, 20'500);
  for (const char* sql :
       {"UPDATE step_pieces SET samples = 1 WHERE first_step = 0",
        "UPDATE step_pieces SET content = content + 1 WHERE first_step = 10000",
        "DELETE FROM step_pieces WHERE first_step = 10000",
        "DELETE FROM step_pieces WHERE first_step = 0",
        "UPDATE steps SET loss = 1 WHERE step=20001", "DELETE FROM steps WHERE step = 20499",
        "UPDATE checks SET agreed = 0 WHERE step = 100"}) {
    const std::string before = slurp(path_);
    edit(sql);
    EXPECT_THAT(peek_journal(path_, JournalCheck::kOpenPart),
                FailsWith(Code::kBadData, Names(path_)))
        << sql;
    write_file(path_, before);
  }
  EXPECT_TRUE(peek_journal(path_, JournalCheck::kOpenPart).is_ok());
}

TEST_F(LongRun, ACutOfTheLineageOpensThePiecesThatItShortens) {
  const auto journal = open();
  commit(*journal, {row(1, 0)});
  train(*journal, 0, 30'500);
  EXPECT_EQ(ends_of(*journal), (std::vector<Step>{10'000, 20'000, 30'000}));
  commit(*journal, {RollbackEntry{{20'000, Phase::kTrain}, "c", "test"}});
  EXPECT_EQ(ends_of(*journal), (std::vector<Step>{10'000, 20'000}));
  commit(*journal, {RollbackEntry{{12'345, Phase::kTrain}, "c", "test"}, row(2, 12'345)});
  EXPECT_EQ(ends_of(*journal), (std::vector<Step>{10'000}));
  train(*journal, 12'345, 20'100, 2);
  ASSERT_EQ(ends_of(*journal), (std::vector<Step>{10'000, 20'000}));
  EXPECT_EQ(journal->pieces()->back().totals, totals_of(*journal, 20'000));
}

TEST_F(LongRun, WhatIsClosedHoldsItsChecksumInEveryProcess) {
  {
    const auto journal = open();
    commit(*journal, {row(1, 0)});
    train(*journal, 0, 15'000);
    commit(*journal, {RollbackEntry{{12'000, Phase::kTrain}, "c", "test"}, row(2, 12'000)});
    train(*journal, 12'000, 20'000, 2);
  }
  EXPECT_TRUE(peek_journal(path_, JournalCheck::kWhole).is_ok());
  EXPECT_TRUE(peek_journal(path_, JournalCheck::kOpenPart).is_ok());
  const auto journal = read_sqlite_journal(path_, JournalCheck::kOpenPart);
  EXPECT_EQ(totals_of(**journal, kNoStep).all.samples, 80'000u);
}

TEST_F(LongRun, AStepThatIsWrittenAgainOpensItsPiece) {
  const auto journal = open();
  commit(*journal, {row(1, 0)});
  train(*journal, 0, 20'000);
  commit(*journal, {long_run_step(10'000)});
  EXPECT_EQ(ends_of(*journal), (std::vector<Step>{10'000}));
}

TEST_F(LongRun, AnOlderJournalGetsItsSummariesOnce) {
  {
    const auto journal = open();
    commit(*journal, {row(1, 0)});
    train(*journal, 0, 20'500);
  }
  make_version_6(path_);
  EXPECT_TRUE((*read_sqlite_journal(path_, JournalCheck::kOpenPart))->pieces()->empty());
  std::string told;
  SqliteJournalOptions options;
  options.on_upgrade = [&told](const std::string& what) { told += what; };
  int alive = 0;
  options.alive = [&alive] { ++alive; };
  {
    const auto journal = open(options);
    EXPECT_THAT(told, testing::HasSubstr("summaries"));
    ASSERT_EQ(ends_of(*journal), (std::vector<Step>{10'000, 20'000}));
    EXPECT_EQ(journal->pieces()->back().totals, totals_of(*journal, 20'000));
    EXPECT_GE(alive, 2);
  }
  const JournalMark mark = peek_journal(path_)->mark;
  EXPECT_EQ(open(options)->mark(), mark) << "nothing is left to do";
}

// A resume compares all of the newest lines with the journal, and older lines at the end.
TEST_F(LongRun, OldLinesOfTheHistoryAreComparedAtTheEnd) {
  make_long_run(dir_, 20'500);
  const std::string path = dir_ + "/history.jsonl";
  const std::string whole = slurp(path);
  std::string changed = whole;
  changed[changed.find("\"loss\":") + 7] ^= 1;  // a digit of the first line
  write_file(path, changed);
  const auto journal = open();
  const History::Steps steps = [&](Step from, Step to, const auto& visit) {
    return journal->visit_steps(from, to, visit);
  };
  const auto pieces = *journal->pieces();
  ASSERT_EQ(pieces.size(), 2u);
  const auto history = History::open(path, 20'500, pieces).value();
  EXPECT_EQ(history->lines(), 20'500u);
  EXPECT_FALSE(*history->correct(20'500, steps, pieces, /*reads_all=*/false));
  EXPECT_TRUE(*history->correct(20'500, steps, pieces));
  EXPECT_EQ(slurp(path), whole);
  EXPECT_FALSE(*history->correct(20'500, steps, pieces));
}

TEST_F(LongRun, AHistoryThatIsNotWhereItShouldBeIsCountedLineByLine) {
  make_long_run(dir_, 12'000);
  const std::string path = dir_ + "/history.jsonl";
  const std::string whole = slurp(path);
  const auto journal = open();
  const History::Steps steps = [&](Step from, Step to, const auto& visit) {
    return journal->visit_steps(from, to, visit);
  };
  const auto pieces = *journal->pieces();
  const size_t line = whole.find("{\"step\":5000,");
  for (const std::string& other :
       {whole.substr(0, line) + " " + whole.substr(line), whole.substr(0, line), std::string(),
        whole.substr(0, line) + whole.substr(whole.find("{\"step\":5002,")), whole + whole,
        std::string(whole.size(), '\n')}) {
    write_file(path, other);
    const auto history = History::open(path, 12'000, pieces).value();
    EXPECT_TRUE(history->fill(12'000, steps).is_ok());
    (void)*history->correct(12'000, steps, pieces, /*reads_all=*/false);
    EXPECT_EQ(slurp(path), whole);
  }
}

}  // namespace
}  // namespace lockstep::coordinator
