// evals.jsonl, and journals that are older than its columns.
#include "coordinator/journal/eval_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "coordinator/journal/journal_chain.h"
#include "coordinator/journal/journal_schema.h"
#include "coordinator/journal/sqlite.h"
#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/journal_world.h"

namespace lockstep::coordinator {
namespace {

EvalEntry eval_of(Step step, Generation generation = 1) {
  EvalEntry entry{generation, step, 0, 100, 90, 0.5};
  entry.top5 = 99;
  entry.lr = 0.001;
  return entry;
}

std::map<Step, EvalEntry> evals_of(const std::vector<EvalEntry>& all) {
  std::map<Step, EvalEntry> evals;
  for (const EvalEntry& entry : all) evals[entry.step] = entry;
  return evals;
}

class EvalFileTest : public ::testing::Test {
 protected:
  EvalFileTest() { file_ = std::move(EvalFile::open(path_, false)).value(); }

  void follow(const std::vector<EvalEntry>& all) {
    const Status status = file_->follow(evals_of(all));
    ASSERT_TRUE(status.is_ok()) << status.message();
    expect_file(all);
  }
  void expect_file(const std::vector<EvalEntry>& all) const {
    std::string expected;
    for (const EvalEntry& entry : all) expected += eval_line(entry, false);
    std::ifstream file(path_);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), expected);
  }

  TemporaryDirectory temporary_;
  std::string path_ = temporary_.path() + "/evals.jsonl";
  std::unique_ptr<EvalFile> file_;
};

TEST(EvalLine, SaysWhatIsKnown) {
  EXPECT_EQ(eval_line(eval_of(47), false),
            "{\"step\":47,\"epoch\":0,\"loss\":0.5,\"accuracy\":0.9,\"correct\":90,\"samples\":100,"
            "\"top5\":0.99,\"lr\":0.001}\n");
  const EvalEntry old{1, 47, 0, 100, 90, 0};
  EXPECT_EQ(eval_line(old, true),
            "{\"step\":47,\"epoch\":0,\"loss\":0,\"accuracy\":0.9,\"correct\":90,\"samples\":100,"
            "\"perplexity\":1}\n");
}

TEST_F(EvalFileTest, LinesComeAndGoWithTheLineage) {
  follow({});
  follow({eval_of(2)});
  follow({eval_of(2), eval_of(4), eval_of(6)});
  follow({eval_of(2), eval_of(4)});  // a rollback
  follow({eval_of(2), eval_of(4), eval_of(6, 2)});
  follow({eval_of(2), eval_of(4, 3), eval_of(6, 3)});  // a rollback and what followed, at once
  follow({});
}

TEST_F(EvalFileTest, AFileThatSomebodyChangedIsWrittenAnew) {
  follow({eval_of(2)});
  std::ofstream(path_, std::ios::app) << "more";
  follow({eval_of(2), eval_of(4)});
  std::filesystem::remove(path_);
  follow({eval_of(2), eval_of(4)});
  std::ofstream(path_) << "other";
  follow({eval_of(2), eval_of(4), eval_of(6)});
}

TEST_F(EvalFileTest, ALineThatSomebodyChangedIsFoundAtTheEnd) {
  const std::map<Step, EvalEntry> evals{{2, eval_of(2)}, {4, eval_of(4)}};
  follow({eval_of(2), eval_of(4)});
  EXPECT_FALSE(file_->correct(evals).value());
  {
    std::fstream file(path_, std::ios::in | std::ios::out);
    file.seekp(8);  // the number of the first step
    file << '3';
  }
  EXPECT_TRUE(file_->correct(evals).value());
  follow({eval_of(2), eval_of(4)});
  EXPECT_FALSE(file_->correct(evals).value());
}

TEST_F(EvalFileTest, WhatWasThereBeforeIsForgotten) {
  follow({eval_of(2), eval_of(4)});
  file_ = std::move(EvalFile::open(path_, false)).value();
  follow({eval_of(2)});
}

using JournalUpgradeTest = JournalTest;

// Makes the journal as version 4 was, with one evaluation.
void make_old(const std::string& path) {
  auto opened = Database::open(path);
  ASSERT_TRUE(opened.is_ok());
  Database& database = **opened;
  ASSERT_TRUE(
      database.execute("BEGIN IMMEDIATE;" + std::string(kJournalSchema) + "PRAGMA user_version=4")
          .is_ok());
  ASSERT_TRUE(JournalChain::create(database).is_ok());
  ASSERT_TRUE(database.execute("COMMIT").is_ok());
  const auto chain = std::move(JournalChain::open(database)).value();
  ASSERT_TRUE(chain->watch().is_ok());
  ASSERT_TRUE(
      database.execute("BEGIN IMMEDIATE; INSERT INTO evals VALUES(2,1,0,100,90,0.5,0)").is_ok());
  ASSERT_TRUE(chain->advance().is_ok());
  ASSERT_TRUE(database.execute("COMMIT").is_ok());
}

void expect_evals(const JournalContents& contents, const std::vector<Step>& steps) {
  ASSERT_EQ(contents.evals.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(contents.evals[i].step, steps[i]);
    EXPECT_EQ(contents.evals[i].correct, 90u);
    EXPECT_EQ(contents.evals[i].top5.has_value(), i > 0);
    EXPECT_EQ(contents.evals[i].lr.has_value(), i > 0);
  }
}

TEST_F(JournalUpgradeTest, TheNumbersOfAnEvaluationStay) {
  const auto journal = open();
  commit(*journal, {eval_of(2)});
  const auto contents = journal->load();
  ASSERT_EQ(contents->evals.size(), 1u);
  EXPECT_EQ(contents->evals[0].top5, 99u);
  EXPECT_EQ(contents->evals[0].lr, 0.001);
}

TEST_F(JournalUpgradeTest, AnOlderJournalIsReadAsItIs) {
  make_old(path_);
  const auto contents = peek_journal(path_);
  ASSERT_TRUE(contents.is_ok()) << contents.status().message();
  expect_evals(*contents, {2});
  const auto journal = read_sqlite_journal(path_);
  ASSERT_TRUE(journal.is_ok()) << journal.status().message();
  expect_evals(*(*journal)->load(), {2});
}

TEST_F(JournalUpgradeTest, AnOlderJournalGetsWhatItLacksWhenTheRunGoesOnAndSaysSoOnce) {
  make_old(path_);
  const JournalMark before = peek_journal(path_)->mark;
  std::string told;
  SqliteJournalOptions options;
  options.on_upgrade = [&told](const std::string& what) { told += what; };
  {
    const auto journal = open(options);
    EXPECT_THAT(told, ::testing::HasSubstr(path_));
    EXPECT_EQ(journal->mark().lineage_id, before.lineage_id);
    EXPECT_EQ(journal->mark().digest, before.digest);  // no row has changed
    commit(*journal, {eval_of(4)});
    expect_evals(*journal->load(), {2, 4});
  }
  told.clear();
  expect_evals(*open(options)->load(), {2, 4});  // its checksum holds
  EXPECT_EQ(told, "");
}

TEST_F(JournalUpgradeTest, ADamagedOlderJournalStaysAsItIs) {
  make_old(path_);
  {
    auto database = Database::open(path_);
    ASSERT_TRUE((*database)->execute("UPDATE evals SET correct = 91").is_ok());
  }
  EXPECT_THAT(open_sqlite_journal(path_), FailsWith(Code::kBadData, Names(path_)));
  auto database = Database::open(path_);
  EXPECT_EQ((*database)->integer("PRAGMA user_version").value(), 4u);
}

}  // namespace
}  // namespace lockstep::coordinator
