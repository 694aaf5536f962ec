// A journal file of its own for a test, and a history to put into it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/journal/journal_memory.h"
#include "coordinator/journal/journal_sqlite.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::coordinator {

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() { path_ = dir_ + "/journal.db"; }

  std::unique_ptr<Journal> open(SqliteJournalOptions options = {}) {
    auto journal = open_sqlite_journal(path_, options);
    EXPECT_TRUE(journal.is_ok()) << journal.status().message();
    return std::move(journal).value();
  }

  // Every kind of journal must do the same.
  void check_all(const std::function<void(Journal&)>& check) {
    check(*open());
    MemoryJournal memory;
    check(memory);
  }

  static void commit(Journal& journal, const std::vector<JournalEntry>& entries) {
    const Status status = journal.commit(entries, 6);
    ASSERT_TRUE(status.is_ok()) << status.message();
  }

  TemporaryDirectory temporary_;
  std::string dir_ = temporary_.path();
  std::string path_;
};

inline StepEntry step_entry(Generation generation, Step step, double loss) {
  StepEntry entry;
  entry.generation = generation;
  entry.step = step;
  entry.loss = loss;
  entry.samples = 4;
  entry.common_hash = ~0ULL - step;  // uses all bits
  return entry;
}

inline RecordsEntry records_entry(Generation generation, MemberId member, uint64_t batch, Step from,
                                  Step to) {
  RecordsEntry entry{generation, member, batch, {}};
  for (Step step = from; step < to; ++step) entry.records.emplace_back().set_step(step);
  return entry;
}

inline CheckpointEntry checkpoint(Step step, Generation generation) {
  CheckpointEntry entry;
  entry.name = "c" + std::to_string(step) + "-" + std::to_string(generation);
  entry.step = step;
  entry.generation = generation;
  return entry;
}

inline std::string start_of(MemberId writer) {
  wire::Start start;
  start.set_writer(writer);
  return start.SerializeAsString();
}

// A generation, its first two steps, and one of everything else.
std::vector<JournalEntry> some_history();
void expect_some_history(Journal& journal);

}  // namespace lockstep::coordinator
