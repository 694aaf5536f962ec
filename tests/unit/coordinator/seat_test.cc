#include "coordinator/term/seat.h"

#include <fstream>

#include "coordinator/term/begin.h"
#include "coordinator/term/lineage.h"
#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/journal_world.h"

namespace lockstep::coordinator {
namespace {

class Seats : public JournalTest {
 protected:
  // A coordinator of `seat`, from its start to its first term.
  Result<std::unique_ptr<Seat>> take(const std::string& seat, bool is_take_over = false,
                                     Term after = 0) {
    return Seat::take({dir_, seat, is_take_over, after});
  }
  // Two coordinators on different machines hold no lock of each other's; here this stands for a
  // machine that is lost with what it held.
  std::unique_ptr<Seat> first_term(const std::string& seat) {
    auto taken = take(seat);
    EXPECT_TRUE(taken.is_ok()) << taken.status().message();
    EXPECT_EQ(*(*taken)->next_term(0), 1u);
    return std::move(*taken);
  }
  static std::vector<Step> steps_in(Journal& journal) {
    std::vector<Step> steps;
    const auto add = [&](const StepEntry& entry) { steps.push_back(entry.step); };
    EXPECT_TRUE(journal.visit_steps(0, kNoStep, add).is_ok());
    return steps;
  }
  // The journal of a first term, which its writer still has open.
  std::unique_ptr<Journal> journal_of_first_term() {
    auto journal = open();
    commit(*journal, {TermEntry{1, 1, "{}"}});
    commit(*journal, open_row());
    commit(*journal, {step_entry(1, 0, 0.5)});
    return journal;
  }
  // Checks the journal as a coordinator that takes over does before its first commit or a later
  // one.
  Status verdict(const Seat& seat) { return check_journal(dir_, seat.journal(), true); }
  static std::vector<JournalEntry> open_row() {
    return {LedgerEntry{LedgerRow{1, {0, Phase::kTrain}, {}, {}, {}}}};
  }
};

TEST_F(Seats, TermsFollowEachOtherWhateverTheJournalKnows) {
  const auto seat = first_term("a");
  EXPECT_EQ(seat->journal(), path_);
  EXPECT_EQ(*seat->next_term(1), 2u);
  EXPECT_EQ(*seat->next_term(1), 3u) << "its predecessor died between claim and commit";
  EXPECT_FALSE(seat->is_superseded());
}

TEST_F(Seats, ASecondCoordinatorOfTheSameMachineIsRefused) {
  const auto first = first_term("a");
  EXPECT_EQ(take("b").status().code(), Code::kUsage);
}

TEST_F(Seats, ARestartedCoordinatorGoesOnWithTheJournalOfItsSeat) {
  first_term("a").reset();
  const auto again = take("a", true);
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ((*again)->journal(), path_);
  EXPECT_EQ(*(*again)->next_term(1), 2u);
}

TEST_F(Seats, AnotherMachineGoesOnWithACopyAndTheOldCoordinatorHasToStop) {
  const auto old = first_term("a");
  const auto journal = open();  // which the old coordinator still has open, its log not merged
  commit(*journal, open_row());
  commit(*journal, {step_entry(1, 0, 0.5), step_entry(1, 1, 0.4)});
  ASSERT_TRUE(std::filesystem::exists(path_ + "-wal"));
  EXPECT_FALSE(old->is_superseded());

  const auto other = take("b", true, 1);
  ASSERT_TRUE(other.is_ok()) << other.status().message();
  EXPECT_TRUE(old->is_superseded());
  EXPECT_EQ(old->next_term(1).status().code(), Code::kRefused);
  EXPECT_EQ((*other)->journal(), dir_ + "/journal-2.db");
  EXPECT_EQ(*(*other)->next_term(1), 2u);
  commit(*journal, {step_entry(1, 2, 0.3)});  // no coordinator reads what it still writes
  auto copy = open_sqlite_journal((*other)->journal());
  ASSERT_TRUE(copy.is_ok()) << copy.status().message();
  EXPECT_EQ(steps_in(**copy), (std::vector<Step>{0, 1}));
  EXPECT_EQ(journal_path(dir_), dir_ + "/journal-2.db");
  EXPECT_FALSE((*other)->is_superseded());
}

TEST_F(Seats, OfTwoThatTakeOverTheSlowerOneIsRefused) {
  first_term("a").reset();
  { const auto journal = open(); }
  const auto faster = take("b", true, 1);
  ASSERT_TRUE(faster.is_ok()) << faster.status().message();
  const auto slower = take("c", true, 1);
  EXPECT_EQ(slower.status().code(), Code::kRefused);
  EXPECT_FALSE((*faster)->is_superseded());
}

TEST_F(Seats, ASupersededSeatsCoordinatorIsNotStartedAgain) {
  first_term("a").reset();
  { const auto journal = open(); }
  const auto other = take("b", true, 1);
  ASSERT_TRUE(other.is_ok());
  const auto again = take("a", true);
  EXPECT_THAT(again, FailsWith(Code::kRefused, Names("term 2")));
}

TEST_F(Seats, WhoDiedBeforeItsCopyWasWholeMakesItAgain) {
  first_term("a").reset();
  {
    const auto journal = open();
    commit(*journal, open_row());
    commit(*journal, {step_entry(1, 0, 0.5)});
  }
  ASSERT_TRUE(claim_term(dir_, {2, "b", "node-b", 9, "journal-2.db"}).is_ok());
  ASSERT_EQ(journal_path(dir_), path_);
  const auto again = take("b", true);
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ((*again)->journal(), dir_ + "/journal-2.db");
  EXPECT_EQ(*(*again)->next_term(1), 3u);
  auto copy = open_sqlite_journal((*again)->journal());
  EXPECT_EQ(steps_in(**copy), (std::vector<Step>{0}));
}

TEST_F(Seats, AResumeByHandGoesOnWithTheNewestJournal) {
  first_term("a").reset();
  { const auto journal = open(); }
  take("b", true, 1)->reset();
  const auto resumed = take("c");
  ASSERT_TRUE(resumed.is_ok()) << resumed.status().message();
  EXPECT_EQ((*resumed)->journal(), dir_ + "/journal-2.db");
  EXPECT_EQ(*(*resumed)->next_term(2), 3u);
}

// It was stopped between its look for a newer claim and its commit.
TEST_F(Seats, WhatAnOlderCoordinatorStillWritesDoesNotStopTheNewOne) {
  const auto old = first_term("a");
  const auto journal = journal_of_first_term();
  const auto other = take("b", true, 1);
  ASSERT_TRUE(other.is_ok()) << other.status().message();
  commit(*journal, {step_entry(1, 1, 0.4)});
  EXPECT_TRUE(verdict(**other).is_ok()) << verdict(**other).message();
  {
    const auto copy = open_sqlite_journal((*other)->journal());
    commit(*journal, {step_entry(1, 2, 0.3)});
    const Status going_on = check_lineage(*(*copy)->load(), {}, dir_, true);
    EXPECT_TRUE(going_on.is_ok()) << going_on.message();
    commit(**copy, {TermEntry{*(*other)->next_term(1), 1, "{}"}});
  }
  commit(*journal, {step_entry(1, 3, 0.2)});
  EXPECT_TRUE(verdict(**other).is_ok()) << verdict(**other).message();
}

TEST_F(Seats, NorDoesTheTermThatAnOlderCoordinatorHadClaimed) {
  const auto old = first_term("a");
  const auto journal = journal_of_first_term();
  ASSERT_EQ(*old->next_term(1), 2u);
  const auto other = take("b", true, 2);
  ASSERT_TRUE(other.is_ok()) << other.status().message();
  commit(*journal, {TermEntry{2, 1, "{}"}});
  EXPECT_TRUE(verdict(**other).is_ok()) << verdict(**other).message();
}

TEST_F(Seats, WhoDiedBetweenItsCopyAndItsFirstCommitGoesOn) {
  const auto old = first_term("a");
  const auto journal = journal_of_first_term();
  take("b", true, 1)->reset();
  commit(*journal, {step_entry(1, 1, 0.4)});
  for (const std::string seat : {"b", "c"}) {  // restarted, and resumed by hand
    const auto again = take(seat, seat == "b");
    ASSERT_TRUE(again.is_ok()) << again.status().message();
    EXPECT_EQ((*again)->journal(), dir_ + "/journal-2.db");
    EXPECT_TRUE(verdict(**again).is_ok()) << verdict(**again).message();
  }
  const auto third = take("d", true, 2);  // from a copy that has no commit of its own
  ASSERT_TRUE(third.is_ok()) << third.status().message();
  EXPECT_TRUE(verdict(**third).is_ok()) << verdict(**third).message();
}

TEST_F(Seats, AJournalThatHasLostItsEndIsNotTakenOver) {
  first_term("a").reset();
  journal_of_first_term().reset();
  const std::string older = dir_ + "/older";
  std::filesystem::copy_file(path_, older);
  commit(*open(), {step_entry(1, 1, 0.4)});
  std::filesystem::rename(older, path_);
  for (const bool is_first : {true, false}) {
    EXPECT_THAT(take("b", true, is_first ? 1 : 0),
                FailsWith(Code::kBadData, Names("has lost its end", "journal.head"),
                          Advises("--run-dir OTHER")));
    EXPECT_FALSE(std::filesystem::exists(dir_ + "/journal-2.db"));
  }
  EXPECT_THAT(check_journal(dir_, journal_path(dir_), false), FailsWith(Code::kBadData));
}

// A copy that lost what it had got since tells so, as any journal does.
TEST_F(Seats, ACopyThatHasLostItsOwnCommitsIsRefused) {
  first_term("a").reset();
  journal_of_first_term().reset();
  const auto other = take("b", true, 1);
  ASSERT_TRUE(other.is_ok()) << other.status().message();
  const std::string copied = dir_ + "/copied";
  std::filesystem::copy_file((*other)->journal(), copied);
  commit(**open_sqlite_journal((*other)->journal()), {TermEntry{2, 1, "{}"}});
  std::filesystem::rename(copied, (*other)->journal());
  EXPECT_THAT(verdict(**other), FailsWith(Code::kBadData, Names("has lost its end")));
}

TEST_F(Seats, ADamagedJournalIsNotTakenOver) {
  first_term("a").reset();
  {
    std::ofstream file(path_);
    file << std::string(8192, 'x');
  }
  EXPECT_FALSE(take("b", true, 1).is_ok());
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/journal-2.db"));
}

}  // namespace
}  // namespace lockstep::coordinator
