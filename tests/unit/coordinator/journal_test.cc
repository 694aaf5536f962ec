#include "coordinator/journal/journal.h"

#include "comm/base/limits.h"
#include "tests/unit/coordinator/journal_world.h"

namespace lockstep::coordinator {

std::vector<JournalEntry> some_history() {
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
          records_entry(1, 2, 1, 0, 2),
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

namespace {

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
  check_all([](Journal& journal) {
    commit(journal, {records_entry(1, 2, 1, 50, 50 + limits::kRecordBatchSteps)});
    for (Step step : {50u, 100u, 149u}) {
      EXPECT_EQ(journal.batches(1, step, step + 1)->size(), 1u) << step;
    }
    EXPECT_EQ(journal.batches(1, 49, 50)->size(), 0u);
    EXPECT_EQ(journal.batches(1, 150, kNoStep)->size(), 0u);
    EXPECT_EQ(journal.batches(2, 0, kNoStep)->size(), 0u);
  });
}

TEST_F(JournalTest, WhatAGenerationBeganWithStaysUntilItIsOver) {
  check_all([](Journal& journal) {
    ASSERT_TRUE(journal.commit(some_history(), 5).is_ok());
    const auto change = [&](Generation generation, GenerationState state) {
      commit(journal, {GenerationEntry{generation, 1, state, {}, {}}});
    };
    change(2, GenerationState::kStarted);
    EXPECT_EQ(journal.load()->generations.at(1).start, start_of(3));
    change(1, GenerationState::kClosed);
    EXPECT_EQ(journal.load()->generations.at(0).start, "");
  });
}

TEST_F(JournalTest, TheTimeOfATermLastsUntilItsLastCommit) {
  check_all([](Journal& journal) {
    const auto commit_at = [&](JournalEntry entry, BothClocks now) {
      const std::vector<JournalEntry> entries{std::move(entry)};
      ASSERT_TRUE(journal.commit(entries, now).is_ok());
    };
    commit_at(TermEntry{1, 1, "{}"}, 1000);
    commit_at(EventEntry{}, 1700);
    commit_at(TermEntry{2, 1, "{}"}, 5000);
    commit_at(EventEntry{}, 5030);
    EXPECT_EQ(journal.load()->wall_ms, 730);
    commit_at(TermEntry{3, 1, "{}"}, {9'000, 6'000});
    commit_at(EventEntry{}, {8'000, 6'100});  // the clock was set back
    EXPECT_EQ(journal.load()->wall_ms, 830);
    commit_at(EventEntry{}, {4'000'000'000, 6'200});  // and forth
    EXPECT_EQ(journal.load()->wall_ms, 930);
  });
}

TEST_F(JournalTest, ARollbackCutsLedgerCheckpointsEvalsAndSteps) {
  check_all([](Journal& journal) {
    ASSERT_TRUE(journal.commit(some_history(), 5).is_ok());
    commit(journal, {RollbackEntry{{1, Phase::kTrain}, "c1-1", "resume"}});
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
    commit(journal, {LedgerEntry{{2, {1, Phase::kTrain}, std::nullopt, false, "resume"}},
                     step_entry(2, 1, 9.0)});
    std::vector<double> losses;
    (void)journal.visit_steps(0, 9, [&](const StepEntry& s) { losses.push_back(s.loss); });
    EXPECT_EQ(losses, (std::vector<double>{2.5, 9.0}));
  });
}

TEST_F(JournalTest, WitnessesSkipsAndTheWordThatTheRunGoesOnAreRemembered) {
  check_all([](Journal& journal) {
    commit(journal,
           {CheckEntry{1, 200, false, "n", 1, false, true}, CheckEntry{1, 100, true, {}, 0, false},
            WitnessEntry{2, 150, CheckSubject::kSum, "m", 1, ~0ULL},
            WitnessEntry{1, 150, CheckSubject::kWeights, "n", 0, 5},
            SkipEntry{3, 70, {2, 4}, "killed two workers"},
            SkipEntry{1, 60, {0, 8}, "the loss is no number"}});
    const auto contents = journal.load();
    ASSERT_TRUE(contents.is_ok()) << contents.status().message();
    ASSERT_EQ(contents->checks.size(), 2u);
    EXPECT_FALSE(contents->checks[0].goes_on);
    EXPECT_TRUE(contents->checks[1].goes_on);
    ASSERT_EQ(contents->witnesses.size(), 2u);
    EXPECT_EQ(contents->witnesses[0].generation, 1u);
    EXPECT_EQ(contents->witnesses[0].hash, 5u);
    EXPECT_EQ(contents->witnesses[1].subject, CheckSubject::kSum);
    EXPECT_EQ(contents->witnesses[1].node, "m");
    EXPECT_EQ(contents->witnesses[1].local_rank, 1u);
    EXPECT_EQ(contents->witnesses[1].hash, ~0ULL);
    ASSERT_EQ(contents->skips.size(), 2u);
    EXPECT_EQ(contents->skips[0].step, 60u);
    EXPECT_EQ(contents->skips[1].slots, (SlotRun{2, 4}));
    EXPECT_EQ(contents->skips[1].generation, 3u);
    EXPECT_EQ(contents->skips[1].reason, "killed two workers");
    commit(journal, {UnskipEntry{70, {2, 4}}, UnskipEntry{60, {0, 4}}});
    const auto later = journal.load();
    ASSERT_EQ(later->skips.size(), 1u);
    EXPECT_EQ(later->skips[0].step, 60u);
  });
}

TEST_F(JournalTest, OfChecksThatAgreedEachGenerationsNewestIsRead) {
  check_all([](Journal& journal) {
    using Read = std::vector<std::pair<Generation, Step>>;
    const auto read = [&] {
      const auto contents = journal.load();
      Read checks;
      for (const CheckEntry& check : contents->checks) {
        checks.emplace_back(check.generation, check.step);
      }
      return checks;
    };
    commit(journal,
           {LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, "start"}},
            CheckEntry{1, 100, true, {}, 0, false}, CheckEntry{1, 200, true, {}, 0, false},
            CheckEntry{1, 250, false, "n", 3, false}, CheckEntry{1, 300, true, {}, 0, false}});
    EXPECT_EQ(read(), (Read{{1, 250}, {1, 300}}));
    commit(journal, {RollbackEntry{{200, Phase::kTrain}, "c1-200", "resume"},
                     CheckEntry{2, 220, true, {}, 0, false}});
    EXPECT_EQ(read(), (Read{{1, 200}, {2, 220}, {1, 250}}));
  });
}

// A step that harmed must not come back with the rollback that it caused, nor must what was said of
// it be forgotten.
TEST_F(JournalTest, ARollbackLeavesWitnessesSkipsAndFolds) {
  check_all([](Journal& journal) {
    commit(journal, {LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, "start"}},
                     WitnessEntry{1, 150, CheckSubject::kWeights, "n", 0, 5},
                     SkipEntry{1, 120, {0, 8}, "spike"}, FoldEntry{1, 0, 100, 400, 9},
                     FoldEntry{1, 100, 200, 400, 10}});
    commit(journal, {RollbackEntry{{50, Phase::kTrain}, "c", "resume"}});
    const auto contents = journal.load();
    EXPECT_EQ(contents->witnesses.size(), 1u);
    EXPECT_EQ(contents->skips.size(), 1u);
    EXPECT_EQ(contents->folds.size(), 2u);
    EXPECT_EQ(journal.ledger()->at(0).last->step, 50u);
  });
}

TEST_F(JournalTest, AFoldTakesItsRecordsAndLeavesTheirNumbers) {
  check_all([](Journal& journal) {
    commit(journal, {records_entry(1, 2, 1, 0, 100), records_entry(1, 2, 2, 100, 200),
                     records_entry(1, 3, 7, 0, 100), records_entry(1, 3, 8, 100, 120),
                     records_entry(2, 4, 5, 100, 120)});
    commit(journal, {FoldEntry{1, 0, 120, 480, ~0ULL}});
    const auto contents = journal.load();
    EXPECT_EQ(contents->batches, (std::map<MemberId, uint64_t>{{2, 2}, {3, 8}, {4, 5}}));
    ASSERT_EQ(contents->folds.size(), 1u);
    EXPECT_EQ(contents->folds[0].digest, ~0ULL);
    EXPECT_EQ(contents->folds[0].samples, 480u);
    EXPECT_EQ(journal.folds()->at(0).last, 120u);
    EXPECT_TRUE(journal.batches(1, 0, 120)->empty());
    EXPECT_EQ(journal.batches(2, 0, 120)->size(), 1u);  // another generation's
    const auto rest = journal.batches(1, 0, kNoStep);   // what lay beyond the fold
    ASSERT_EQ(rest->size(), 1u);
    EXPECT_EQ(rest->at(0).records.size(), 80u);
    EXPECT_EQ(rest->at(0).records.front().step(), 120u);
    commit(journal, {records_entry(1, 3, 9, 120, 130)});
    EXPECT_EQ(journal.load()->batches.at(3), 9u);
  });
}

TEST_F(JournalTest, RecordsOnBothSidesOfAFoldStay) {
  check_all([](Journal& journal) {
    commit(journal, {records_entry(1, 2, 1, 20, 100)});
    commit(journal, {FoldEntry{1, 40, 60, 80, 1}});
    EXPECT_EQ(journal.batches(1, 0, 40)->at(0).records.size(), 60u);
    EXPECT_EQ(journal.batches(1, 60, 100)->at(0).records.back().step(), 99u);
    commit(journal, {FoldEntry{1, 20, 40, 80, 1}, FoldEntry{1, 60, 100, 160, 1}});
    EXPECT_TRUE(journal.batches(1, 0, kNoStep)->empty());
    EXPECT_EQ(journal.load()->batches.at(2), 1u);
  });
}

}  // namespace
}  // namespace lockstep::coordinator
