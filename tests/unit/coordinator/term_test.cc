// Tests how a term begins: in every mode, from what an earlier one left in the journal.
#include "coordinator/term/term.h"

#include <gtest/gtest.h>

#include "coordinator/decide/begin_state.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

class MemoryShelf final : public CheckpointShelf {
 public:
  Result<std::vector<ListedCheckpoint>> list() override { return found; }
  Status verify(const ListedCheckpoint& checkpoint) override {
    if (checkpoint.path != damaged) return Status::ok();
    return {Code::kBadData, "damaged"};
  }

  void add(Step step, Generation generation, MemberId member) {
    ListedCheckpoint listed;
    listed.name = {step, generation, member};
    listed.path = "shelf/" + checkpoint_name(listed.name);
    listed.info.name = checkpoint_name(listed.name);
    listed.info.manifest_sha256 = "m";
    listed.info.manifest.resume.step = step;
    listed.info.manifest.generation = generation;
    listed.info.manifest.member = member;
    found.push_back(std::move(listed));
  }

  std::vector<ListedCheckpoint> found;
  std::string damaged;
};

std::string start_blob(const std::vector<MemberId>& members, bool has_resume,
                       const std::vector<MemberId>& sources = {}) {
  wire::Start start;
  for (MemberId source : sources) start.mutable_source()->add_members(source);
  for (MemberId member : members) start.add_members()->set_member(member);
  if (has_resume) start.mutable_resume()->set_step(0);
  return start.SerializeAsString();
}

wire::StepRecord record(Step step) {
  wire::StepRecord record;
  record.set_step(step);
  return record;
}

StepEntry complete(Generation generation, Step step) {
  StepEntry entry;
  entry.generation = generation;
  entry.step = step;
  entry.samples = 4;
  entry.wall_us = 1000;
  return entry;
}

// Two members train in generation 1; steps 0 and 1 are complete, step 2 was reported by one.
class TermTest : public ::testing::Test {
 protected:
  TermTest() {
    for (const IdentityEntry& entry : options_.identity) commit({entry});
    commit({TermEntry{1, 1, "{}"}, MemberEntry{1, 1, "n", 0, 1000}, MemberEntry{2, 1, "n", 1, 1001},
            MemberEntry{3, 1, "n", 2, 1002},
            GenerationEntry{1, 1, GenerationState::kStarted, {1, 2}, start_blob({1, 2}, true)},
            LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, "start"}},
            RecordsEntry{1, 1, 1, {record(0), record(1), record(2)}},
            RecordsEntry{1, 2, 1, {record(0), record(1)}}, complete(1, 0), complete(1, 1)});
  }

  void commit(std::vector<JournalEntry> entries) {
    ASSERT_TRUE(journal_.commit(entries, ++wall_ms_).is_ok());
  }
  Result<BegunTerm> begin(BeginMode mode) {
    return begin_term(journal_, *journal_.load(), shelf_, options_, {mode, 7, "{}", ++wall_ms_},
                      *logger_);
  }
  BegunTerm good(BeginMode mode) {
    auto begun = begin(mode);
    EXPECT_TRUE(begun.is_ok()) << begun.status().message();
    return begun.is_ok() ? std::move(*begun) : BegunTerm{};
  }
  void close_row(Step at, Phase phase) {
    commit({LedgerEntry{{1, {0, Phase::kTrain}, ResumePoint{at, phase}, false, "start"}}});
  }
  GenerationState state_of(Generation g) { return journal_.generations().at(g); }

  Options options_ = small_options(2, 4);
  MemoryJournal journal_;
  MemoryShelf shelf_;
  std::unique_ptr<Logger> logger_ = null_logger();
  int64_t wall_ms_ = 0;
};

TEST_F(TermTest, ATakeOverGoesOnWithTheStartedGenerationAndCutsNothing) {
  const BegunTerm begun = good(BeginMode::kTakeOver);
  const Beginning& b = begun.beginning;
  EXPECT_EQ(b.term, 2u);
  EXPECT_EQ(b.next_member, 4u);
  EXPECT_EQ(b.generation, 1u);
  EXPECT_EQ(b.completed, 2u);
  EXPECT_TRUE(b.is_identity_stored);
  ASSERT_TRUE(b.living.has_value());
  EXPECT_EQ(b.living->generation, 1u);
  EXPECT_EQ(b.living->start.members_size(), 2);
  EXPECT_FALSE(b.living->row.last.has_value());
  ASSERT_EQ(b.living->members.size(), 2u);  // the third was waiting and does not count
  EXPECT_EQ(b.living->members[1].pid, 1001u);
  EXPECT_EQ(b.living->batches, (std::map<MemberId, uint64_t>{{1, 1}, {2, 1}}));
  ASSERT_EQ(b.living->unfinished.size(), 1u);
  ASSERT_EQ(b.living->unfinished[0].records.size(), 1u);  // of step 2 alone
  EXPECT_EQ(b.living->unfinished[0].records[0].step(), 2u);
  EXPECT_DOUBLE_EQ(begun.stats.steady_samples_per_second(), 4000);
  EXPECT_EQ(journal_.load()->last_term, 2u);
  EXPECT_FALSE(journal_.load()->ledger.at(0).last.has_value());
  EXPECT_EQ(state_of(1), GenerationState::kStarted);
}

TEST_F(TermTest, ATakeOverOfAnEndedRunKnowsHowItEndedAndAResumeBeginsAnew) {
  commit({GenerationEntry{1, 1, GenerationState::kClosed, {}, {}},
          SettingEntry{"end", "65 a loss is no number"}});
  const State ended = begin_state(good(BeginMode::kTakeOver).beginning, 0, {});
  EXPECT_EQ(ended.run, RunState::kEnded);
  EXPECT_EQ(ended.exit_code, 65);
  EXPECT_EQ(ended.message, "a loss is no number");
  const State resumed = begin_state(good(BeginMode::kResume).beginning, 0, {});
  EXPECT_EQ(resumed.run, RunState::kGathering);
  EXPECT_EQ(resumed.exit_code, 0);
}

TEST_F(TermTest, ATakeOverAbandonsWhatWasPreparedAndKeepsWhatWasPlanned) {
  commit({GenerationEntry{2, 1, GenerationState::kPlanned, {1, 3}, start_blob({1, 3}, false)},
          GenerationEntry{3, 1, GenerationState::kPrepared, {1}, {}}});
  const Beginning b = good(BeginMode::kTakeOver).beginning;
  EXPECT_EQ(b.generation, 3u);
  ASSERT_TRUE(b.living->planned.has_value());
  EXPECT_EQ(b.living->planned->generation, 2u);
  EXPECT_EQ(b.living->members.size(), 3u);
  EXPECT_EQ(state_of(2), GenerationState::kPlanned);
  EXPECT_EQ(state_of(3), GenerationState::kAbandoned);
}

TEST_F(TermTest, ATakeOverKnowsWhereAGenerationBeganThatWasPlanned) {
  close_row(1, Phase::kTrain);
  commit({GenerationEntry{1, 1, GenerationState::kClosed, {}, {}},
          GenerationEntry{2, 1, GenerationState::kPlanned, {1, 2}, start_blob({1, 2}, false)},
          GenerationEntry{2, 1, GenerationState::kStarted, {}, {}},
          LedgerEntry{{2, {1, Phase::kTrain}, std::nullopt, false, "planned"}},
          RecordsEntry{2, 2, 2, {record(1)}}});
  const Beginning b = good(BeginMode::kTakeOver).beginning;
  EXPECT_EQ(b.completed, 1u);  // step 1 of generation 1 is no longer in the lineage
  EXPECT_EQ(b.living->start.resume().step(), 1u);
  ASSERT_EQ(b.living->unfinished.size(), 1u);
  EXPECT_EQ(b.living->unfinished[0].generation, 2u);
}

TEST_F(TermTest, ATakeOverKnowsTheClosedRowsWhoseStepsAreNotComplete) {
  close_row(3, Phase::kTrain);
  commit({GenerationEntry{2, 1, GenerationState::kStarted, {1}, start_blob({1}, true)},
          LedgerEntry{{2, {3, Phase::kTrain}, std::nullopt, false, "death"}},
          RecordsEntry{1, 2, 2, {record(2), record(3)}},  // step 3 was lost with this generation
          RecordsEntry{2, 1, 2, {record(3)}}});
  const auto living = good(BeginMode::kTakeOver).beginning.living;
  ASSERT_EQ(living->closed.size(), 1u);
  EXPECT_EQ(living->closed[0].generation, 1u);
  ASSERT_EQ(living->unfinished.size(), 3u);
  EXPECT_EQ(living->unfinished[0].records[0].step(), 2u);
  EXPECT_EQ(living->unfinished[1].records.size(), 1u);
  EXPECT_EQ(living->unfinished[2].records[0].step(), 3u);
}

using Worked = std::map<MemberId, std::vector<WorkedSteps>>;

TEST_F(TermTest, WhoFetchedTheLastStateOfARowHasNoRecordOfItsLastStep) {
  close_row(3, Phase::kTrain);
  commit({GenerationEntry{2, 1, GenerationState::kStarted, {1, 2}, start_blob({1, 2}, true, {2})},
          LedgerEntry{{2, {3, Phase::kTrain}, std::nullopt, false, "death"}}});
  const auto living = good(BeginMode::kTakeOver).beginning.living;
  EXPECT_EQ(living->worked, (Worked{{1, {{1, 0, 2}}}, {2, {{1, 0, 3}}}}));
}

TEST_F(TermTest, WhoJoinedLaterHasNoRecordsOfTheRowsBefore) {
  close_row(3, Phase::kTrain);
  commit({GenerationEntry{2, 1, GenerationState::kStarted, {1, 2}, start_blob({1, 2}, true, {1})},
          GenerationEntry{2, 1, GenerationState::kClosed, {}, {}},
          LedgerEntry{{2, {3, Phase::kTrain}, ResumePoint{4, Phase::kTrain}, false, "death"}},
          GenerationEntry{3, 1, GenerationState::kStarted, {1, 3}, start_blob({1, 3}, true, {1})},
          LedgerEntry{{3, {4, Phase::kTrain}, std::nullopt, false, "planned"}}});
  const auto living = good(BeginMode::kTakeOver).beginning.living;
  EXPECT_EQ(living->worked, (Worked{{1, {{1, 0, 3}, {2, 3, 4}}}, {2, {{1, 0, 2}}}}));
}

TEST_F(TermTest, ATakeOverTwiceBeginsTheSameWithAHigherTerm) {
  const Beginning first = good(BeginMode::kTakeOver).beginning;
  const Beginning second = good(BeginMode::kTakeOver).beginning;
  EXPECT_EQ(second.term, first.term + 1);
  EXPECT_EQ(second.completed, first.completed);
  EXPECT_EQ(second.living->generation, first.living->generation);
}

TEST_F(TermTest, TheNextTermBeginsFromTheNewestCheckpointOfTheLineage) {
  shelf_.add(1, 1, 1);
  shelf_.add(2, 1, 1);
  commit(
      {GenerationEntry{2, 1, GenerationState::kPrepared, {1}, {}}, SettingEntry{"workers", "3"}});
  const BegunTerm begun = good(BeginMode::kNextTerm);
  EXPECT_FALSE(begun.beginning.living.has_value());
  EXPECT_EQ(begun.beginning.base.step, 2u);
  EXPECT_EQ(begun.beginning.completed, 2u);
  EXPECT_EQ(begun.beginning.base_checkpoint, shelf_.found[1].path);
  EXPECT_EQ(begun.beginning.generation, 2u);
  EXPECT_EQ(begun.beginning.settings.at("workers"), "3");
  EXPECT_EQ(journal_.load()->ledger.at(0).last->step, 2u);
  EXPECT_EQ(state_of(1), GenerationState::kClosed);
  EXPECT_EQ(state_of(2), GenerationState::kAbandoned);
}

TEST_F(TermTest, ADamagedCheckpointCostsStepsButNeverTheLineage) {
  shelf_.add(1, 1, 1);
  shelf_.add(2, 1, 1);
  shelf_.damaged = shelf_.found[1].path;
  const BegunTerm begun = good(BeginMode::kNextTerm);
  EXPECT_EQ(begun.beginning.base.step, 1u);
  EXPECT_EQ(begun.beginning.completed, 1u);
  std::vector<Step> steps;
  (void)journal_.visit_steps(0, 9, [&](const StepEntry& s) { steps.push_back(s.step); });
  EXPECT_EQ(steps, (std::vector<Step>{0}));
}

TEST_F(TermTest, ATakeOverOfARunThatWasJustCutBeginsFromDiskAgain) {
  shelf_.add(2, 1, 1);
  ASSERT_EQ(good(BeginMode::kNextTerm).beginning.base.step, 2u);
  const Beginning b = good(BeginMode::kTakeOver).beginning;
  EXPECT_FALSE(b.living.has_value());
  EXPECT_EQ(b.base.step, 2u);
  EXPECT_EQ(b.term, 3u);
}

TEST_F(TermTest, ATakeOverKnowsWhoMayStillBeThereAndWhatTheyMayTellAgain) {
  CheckpointEntry dropped;
  dropped.name = checkpoint_name({1, 1, 1});
  dropped.step = dropped.generation = dropped.member = 1;
  dropped.state = CheckpointState::kDropped;
  commit({dropped});
  const Beginning next = good(BeginMode::kNextTerm).beginning;  // where no worker has registered
  EXPECT_TRUE(next.known.empty()) << "the coordinator itself knows better";
  EXPECT_EQ(next.dropped.size(), 1u);
  const Beginning taken = good(BeginMode::kTakeOver).beginning;
  EXPECT_FALSE(taken.living.has_value());
  ASSERT_EQ(taken.known.size(), 3u);
  EXPECT_EQ(taken.known[0].member, 1u);
  EXPECT_EQ(taken.dropped, (std::set<std::string>{dropped.name}));
  const State state = begin_state(taken, 0, {});
  EXPECT_TRUE(state.experience.known.contains({taken.known[0].node, taken.known[0].pid}));
  // All processes are new.
  const Beginning resumed = good(BeginMode::kResume).beginning;
  EXPECT_TRUE(resumed.known.empty());
  EXPECT_TRUE(resumed.dropped.empty());
}

TEST_F(TermTest, ATakeOverBeforeTheFirstStartBeginsFromNothing) {
  MemoryJournal fresh;
  const std::vector<JournalEntry> a_term{TermEntry{1, 1, "{}"}};
  ASSERT_TRUE(fresh.commit(a_term, 1).is_ok());
  const auto begun = begin_term(fresh, *fresh.load(), shelf_, options_,
                                {BeginMode::kTakeOver, 7, "{}", 1}, *logger_);
  ASSERT_TRUE(begun.is_ok()) << begun.status().message();
  EXPECT_EQ(begun->beginning.base.step, 0u);
  EXPECT_EQ(begun->beginning.base_checkpoint, "");
}

TEST_F(TermTest, AJournalThatIsLostUnderARunIsNoBeginning) {
  MemoryJournal lost;
  const auto begun = begin_term(lost, *lost.load(), shelf_, options_,
                                {BeginMode::kTakeOver, 7, "{}", 1}, *logger_);
  EXPECT_EQ(begun.status().code(), Code::kBadData) << begun.status().message();
  EXPECT_EQ(lost.commits(), 0u);
}

TEST_F(TermTest, AResumeForgetsWhatWasAskedForUnderWay) {
  commit({SettingEntry{"workers", "3"}});
  EXPECT_EQ(good(BeginMode::kTakeOver).beginning.settings.size(), 1u);
  EXPECT_TRUE(good(BeginMode::kResume).beginning.settings.empty());
  EXPECT_TRUE(journal_.load()->settings.empty());
}

TEST_F(TermTest, WhatIsRefusedChangesNothing) {
  shelf_.add(2, 1, 1);
  const uint64_t commits = journal_.commits();
  EXPECT_EQ(begin(BeginMode::kFirst).status().code(), Code::kUsage);
  const Options good_options = options_;
  options_ = small_options(2, 1);  // fewer steps than are done
  EXPECT_EQ(begin(BeginMode::kResume).status().code(), Code::kUsage);
  options_ = good_options;
  options_.identity[0].value = "another";
  EXPECT_EQ(begin(BeginMode::kResume).status().code(), Code::kUsage);
  EXPECT_EQ(begin(BeginMode::kTakeOver).status().code(), Code::kUsage);
  EXPECT_EQ(journal_.commits(), commits);
}

TEST_F(TermTest, ACompleteRunIsLeftAsItIs) {
  shelf_.add(4, 1, 1);
  EvalEntry eval;
  eval.step = 4;
  eval.generation = 1;
  CheckpointEntry last;
  last.name = shelf_.found[0].info.name;
  last.step = 4;
  last.generation = last.member = 1;
  last.manifest_sha256 = "m";
  commit({complete(1, 2), complete(1, 3), eval, last});
  close_row(4, Phase::kEnd);
  const uint64_t commits = journal_.commits();
  for (const BeginMode mode : {BeginMode::kResume, BeginMode::kTakeOver}) {
    const BegunTerm begun = good(mode);
    EXPECT_TRUE(begun.is_complete);
    EXPECT_EQ(begun.beginning.term, 1u);
    EXPECT_EQ(begun.beginning.completed, 4u);
    EXPECT_DOUBLE_EQ(begun.stats.steady_samples_per_second(), 4000);
  }
  EXPECT_EQ(journal_.commits(), commits);
  shelf_.damaged = shelf_.found[0].path;
  EXPECT_EQ(begin(BeginMode::kResume).status().code(), Code::kBadData);
  shelf_.damaged.clear();
  options_ = small_options(2, 6);  // a longer run goes on
  EXPECT_FALSE(good(BeginMode::kResume).is_complete);
}

}  // namespace
}  // namespace lockstep::coordinator
