// Tests from which checkpoint a term begins after the members have disagreed.
#include "coordinator/state/corruption.h"
#include "coordinator/term/term.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

class TrustedCheckpoints : public ::testing::Test, protected CheckpointShelf {
 protected:
  TrustedCheckpoints() {
    for (const IdentityEntry& entry : options_.identity) commit(entry);
    commit(TermEntry{1, 1, "{}"});
    commit(
        GenerationEntry{1, 1, GenerationState::kStarted, {1}, wire::Start().SerializeAsString()});
    commit(LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, "start"}});
    for (Step step = 0; step < 8; ++step) {
      StepEntry entry;
      entry.generation = 1;
      entry.step = step;
      commit(entry);
    }
    for (Step step : {3, 5, 7}) {
      CheckpointEntry entry{checkpoint_name({step, 1, 1}), step, 1, 1, "m", "w", 1, false,
                            CheckpointState::kComplete};
      commit(entry);
    }
  }
  Result<std::vector<ListedCheckpoint>> list() override {
    std::vector<ListedCheckpoint> found;
    for (Step step : {3, 5, 7}) {
      ListedCheckpoint listed;
      listed.name = {step, 1, 1};
      listed.path = "shelf/" + checkpoint_name(listed.name);
      listed.info.name = checkpoint_name(listed.name);
      listed.info.manifest_sha256 = "m";
      listed.info.manifest.resume.step = step;
      listed.info.manifest.generation = listed.info.manifest.member = 1;
      found.push_back(std::move(listed));
    }
    return found;
  }
  Status verify(const ListedCheckpoint&) override { return Status::ok(); }

  void commit(JournalEntry entry) {
    ASSERT_TRUE(journal_.commit(std::vector<JournalEntry>{std::move(entry)}, 0).is_ok());
  }
  Beginning begin(BeginMode mode) {
    auto begun =
        begin_term(journal_, *journal_.load(), *this, options_, {mode, 7, "{}", 1}, *logger_);
    EXPECT_TRUE(begun.is_ok()) << begun.status().message();
    return begun.is_ok() ? begun->beginning : Beginning{};
  }
  // Two members differed in generation 1 after step 4, and no vote could tell which was wrong. A
  // later generation, which came to step 4 again, is living.
  void differ_and_begin_again() {
    commit(MemberEntry{1, 1, "n", 0, 1000});
    commit(MemberEntry{2, 1, "n", 1, 1001});
    commit(CheckEntry{1, 4, false, {}, 0, false});
    commit(WitnessEntry{1, 4, CheckSubject::kWeights, "n", 0, 10});
    commit(WitnessEntry{1, 4, CheckSubject::kWeights, "n", 1, 11});
    EXPECT_EQ(begin(BeginMode::kNextTerm).base.step, 0u);
    start_generation(2, {1, 2}, 0);
  }
  void start_generation(Generation generation, const std::vector<MemberId>& members, Step from) {
    wire::Start start;
    uint32_t rank = 0;
    SlotMapEntry map{generation, members, {}};
    for (MemberId id : members) {
      wire::MemberInfo* info = start.add_members();
      info->set_member(id);
      info->set_rank(rank);
      info->set_node("n");
      const SlotRun run{rank * 2, rank * 2 + 2};
      info->mutable_slots()->set_begin(run.begin);
      info->mutable_slots()->set_end(run.end);
      map.runs.push_back(run);
      ++rank;
    }
    start.mutable_resume()->set_step(from);
    commit(GenerationEntry{generation, 2, GenerationState::kStarted, members,
                           start.SerializeAsString()});
    commit(map);
    commit(LedgerEntry{{generation, {from, Phase::kTrain}, std::nullopt, false, "resume"}});
  }

  Options options_ = small_options(1, 20);
  MemoryJournal journal_;
  std::unique_ptr<Logger> logger_ = null_logger();
};

TEST_F(TrustedCheckpoints, TheNextTermBeginsAtOrBeforeTheLastAgreement) {
  commit(CheckEntry{1, 4, true, {}, 0, false});
  commit(CheckEntry{1, 6, true, {}, 0, false});
  commit(CheckEntry{1, 8, false, "n", 1, false});
  const Beginning b = begin(BeginMode::kNextTerm);
  EXPECT_EQ(b.base.step, 5u);
  EXPECT_EQ(b.checks.agreed, 4u);  // the one after step 6 is no part of the lineage any more
  EXPECT_EQ(b.checks.expelled, (std::set<Place>{{"n", 1}}));
  EXPECT_FALSE(b.checks.is_open);
  // From there on newer ones count again, for a process that begins later too.
  EXPECT_FALSE(newest_trusted(*journal_.load()).has_value());
}

TEST_F(TrustedCheckpoints, WithoutAnyAgreementTheRunBeginsAgain) {
  commit(CheckEntry{1, 2, false, {}, 0, false});
  const Beginning b = begin(BeginMode::kNextTerm);
  EXPECT_EQ(b.base.step, 0u);
  EXPECT_EQ(b.base_checkpoint, "");
  EXPECT_EQ(b.checks.unexplained, (std::set<Step>{2}));
}

TEST_F(TrustedCheckpoints, ACoordinatorThatDiedBeforeItWentBackGoesBackNow) {
  commit(CheckEntry{1, 4, true, {}, 0, false});
  commit(CheckEntry{1, 8, false, "n", 1, false});
  for (const BeginMode mode : {BeginMode::kTakeOver, BeginMode::kResume}) {
    const Beginning b = begin(mode);
    EXPECT_FALSE(b.living.has_value());
    EXPECT_EQ(b.base.step, 3u);
    EXPECT_TRUE(b.checks.expelled.contains({"n", 1}));
  }
}

TEST_F(TrustedCheckpoints, ATakeOverAfterAgreementGoesOnWithIt) {
  commit(CheckEntry{1, 4, true, {}, 0, false});
  wire::Start start;
  start.add_members()->set_member(1);
  start.mutable_resume()->set_step(0);
  commit(GenerationEntry{1, 1, GenerationState::kStarted, {1}, start.SerializeAsString()});
  const Beginning b = begin(BeginMode::kTakeOver);
  EXPECT_TRUE(b.living.has_value());
  EXPECT_EQ(b.checks.agreed, 4u);
}

TEST_F(TrustedCheckpoints, WhatWasSaidInTheFirstAttemptIsKnownToWhoeverBeginsTheSecond) {
  differ_and_begin_again();
  for (const BeginMode mode : {BeginMode::kTakeOver, BeginMode::kNextTerm}) {
    const Beginning b = begin(mode);
    EXPECT_EQ(b.checks.unexplained, (std::set<Step>{4}));
    ASSERT_EQ(b.checks.witnesses.size(), 2u);
    EXPECT_EQ(b.checks.witnesses[1].hash, 11u);
    EXPECT_FALSE(b.checks.is_open);
  }
}

TEST_F(TrustedCheckpoints, ACoordinatorThatDiedWhenItKnewWhoWasWrongThenGoesOnWithoutThem) {
  differ_and_begin_again();
  commit(CheckEntry{2, 4, true, {}, 0, false});
  commit(CheckEntry{1, 4, false, "n", 1, false});  // of the first attempt, which is undone
  const Beginning b = begin(BeginMode::kTakeOver);
  ASSERT_TRUE(b.living.has_value());
  EXPECT_EQ(b.checks.expelled, (std::set<Place>{{"n", 1}}));
  World w(options_, b);
  EXPECT_EQ(w.wait(100), Reason::kRegrouped);
  EXPECT_EQ(w.state.ranks, (std::vector<MemberId>{1}));
}

TEST_F(TrustedCheckpoints, ACoordinatorThatDiedAfterASecondDifferenceGoesBackOnce) {
  differ_and_begin_again();
  commit(CheckEntry{2, 2, true, {}, 0, false});
  commit(CheckEntry{2, 4, false, "n", 1, false});
  EXPECT_EQ(newest_trusted(*journal_.load()), 2u);
  const Beginning b = begin(BeginMode::kTakeOver);
  EXPECT_FALSE(b.living.has_value());
  EXPECT_FALSE(newest_trusted(*journal_.load()).has_value());
}

TEST_F(TrustedCheckpoints, ARunThatWentOnByPolicyNeverGoesBackToWhatTheWrongOneWrote) {
  commit(MemberEntry{1, 1, "n", 0, 1000});
  commit(CheckEntry{1, 4, true, {}, 0, false});
  commit(CheckEntry{1, 5, false, "n", 0, false, true});
  const JournalContents contents = *journal_.load();
  EXPECT_FALSE(newest_trusted(contents).has_value());
  EXPECT_EQ(check_history(contents).tainted, 5u);
  std::vector<Step> steps;
  for (const ListedCheckpoint& c : candidates(*list(), contents)) steps.push_back(c.name.step);
  EXPECT_EQ(steps, (std::vector<Step>{3}));
}

TEST_F(TrustedCheckpoints, ALineageIsCleanAgainOnceItIsCutBeforeTheTaint) {
  commit(CheckEntry{1, 5, false, "n", 0, false, true});
  commit(RollbackEntry{{5, Phase::kTrain}, "c", "resume"});
  EXPECT_EQ(check_history(*journal_.load()).tainted, 5u);  // the wrong step is in there
  commit(RollbackEntry{{4, Phase::kTrain}, "c", "resume"});
  EXPECT_FALSE(check_history(*journal_.load()).tainted.has_value());
}

}  // namespace
}  // namespace lockstep::coordinator
