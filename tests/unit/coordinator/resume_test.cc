// Tests where a run goes on from, and when it must not go on by itself.
#include "coordinator/term/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "coordinator/state/evaluations.h"
#include "tests/support/fails_with.h"
#include "tests/support/small_checkpoint.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StepEntry step_at(Step step) {
  StepEntry entry;
  entry.generation = 1;
  entry.step = step;
  return entry;
}

wire::StepRecords batch_of(uint64_t number, const std::vector<Step>& steps) {
  wire::StepRecords batch;
  batch.set_batch(number);
  for (Step step : steps) batch.add_records()->set_step(step);
  return batch;
}

ListedCheckpoint on_disk(Step step, Generation generation, const std::string& sha) {
  ListedCheckpoint listed;
  listed.name = {step, generation, 1};
  listed.info.name = checkpoint_name(listed.name);
  listed.info.manifest_sha256 = sha;
  return listed;
}

TEST(Resume, OnlyCheckpointsOfTheSurvivingLineageCount) {
  JournalContents contents;
  contents.ledger = {{1, {0, Phase::kTrain}, ResumePoint{1000, Phase::kTrain}, false, ""},
                     {2, {1000, Phase::kTrain}, std::nullopt, false, ""}};
  CheckpointEntry gone;
  gone.name = checkpoint_name({1400, 1, 1});
  gone.manifest_sha256 = "x";
  gone.state = CheckpointState::kRolledBack;
  CheckpointEntry changed;
  changed.name = checkpoint_name({1050, 2, 1});
  changed.manifest_sha256 = "what the journal saw";
  contents.checkpoints = {gone, changed};
  const auto found =
      candidates({on_disk(900, 1, "y"), on_disk(1050, 2, "another"), on_disk(1100, 2, "y"),
                  on_disk(1300, 1, "y"), on_disk(1400, 1, "x"), on_disk(1500, 3, "y")},
                 contents);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].info.name, checkpoint_name({1100, 2, 1}));
  EXPECT_EQ(found[1].info.name, checkpoint_name({900, 1, 1}));
}

TEST(Resume, ACheckpointThatWasDroppedBeforeItsStepsWereCutDoesNotCount) {
  MemoryJournal journal;
  CheckpointEntry dropped;  // not deleted yet
  dropped.name = checkpoint_name({105, 1, 1});
  dropped.step = 105;
  dropped.manifest_sha256 = "x";
  dropped.state = CheckpointState::kDropped;
  CheckpointEntry still_good = dropped;
  still_good.name = checkpoint_name({91, 1, 1});
  still_good.step = 91;
  const std::vector<JournalEntry> entries{
      LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, ""}}, dropped, still_good,
      RollbackEntry{{98, Phase::kTrain}, "", ""},
      LedgerEntry{{2, {98, Phase::kTrain}, std::nullopt, false, ""}}};
  ASSERT_TRUE(journal.commit(entries, 0).is_ok());
  const auto found =
      candidates({on_disk(91, 1, "x"), on_disk(98, 2, "y"), on_disk(105, 1, "x")}, *journal.load());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].info.name, checkpoint_name({98, 2, 1}));
  EXPECT_EQ(found[1].info.name, checkpoint_name({91, 1, 1}));
}

TEST(Resume, ACheckpointThatItsGenerationWroteBeforeItsFirstStepCountsAfterACutThere) {
  MemoryJournal journal;
  CheckpointEntry entry;
  entry.name = checkpoint_name({8, 2, 1});
  entry.step = 8;
  entry.generation = 2;
  entry.manifest_sha256 = "x";
  const std::vector<JournalEntry> entries{
      LedgerEntry{{1, {0, Phase::kTrain}, ResumePoint{8, Phase::kTrain}, false, ""}},
      LedgerEntry{{2, {8, Phase::kTrain}, std::nullopt, false, ""}}, entry,
      RollbackEntry{{8, Phase::kTrain}, entry.name, "resume"}};
  ASSERT_TRUE(journal.commit(entries, 0).is_ok());
  const auto contents = journal.load();
  ASSERT_TRUE(contents->ledger[1].rolled_back);
  const auto found = candidates({on_disk(8, 2, "x")}, *contents);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].info.name, entry.name);
}

TEST(Resume, AnEpochEndWithoutItsEvaluationResumesWithIt) {
  const Options o = small_options(2, 60);  // 25 steps an epoch
  EvalEntry known;
  known.step = 25;
  EXPECT_EQ(phase_after(24, {}, o), Phase::kTrain);
  EXPECT_EQ(phase_after(25, {}, o), Phase::kEval);
  EXPECT_EQ(phase_after(25, {{25, known}}, o), Phase::kTrain);
  EXPECT_EQ(phase_after(60, {}, o), Phase::kEval);
  known.step = 60;
  EXPECT_EQ(phase_after(60, {{60, known}}, o), Phase::kEnd);
  EXPECT_EQ(phase_after(0, {}, o), Phase::kTrain);
}

TEST(Resume, StepsThatNotAllRanksReportedAreRecoveredFromBatches) {
  MemoryJournal journal;
  RecordsEntry batch{1, 1, 1, {}};
  for (Step step = 0; step < 3; ++step) batch.records.emplace_back().set_step(step);
  const std::vector<JournalEntry> entries{
      LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, ""}}, batch, step_at(0)};
  ASSERT_TRUE(journal.commit(entries, 0).is_ok());
  Manifest manifest;
  manifest.member = 1;
  manifest.resume.step = 4;
  auto found = recover_steps(journal, manifest, *journal.load());
  EXPECT_EQ(found.status().code(), Code::kBadData);  // step 4 is nowhere
  manifest.unacknowledged.resize(2);
  manifest.unacknowledged[0] = batch_of(1, {0, 1, 2});  // its acknowledgement was lost
  manifest.unacknowledged[1] = batch_of(2, {3, 4});     // and step 5 came after the checkpoint
  found = recover_steps(journal, manifest, *journal.load());
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  ASSERT_EQ(found->steps.size(), 3u);
  EXPECT_EQ(found->steps.front().step, 1u);
  EXPECT_EQ(found->steps.back().step, 3u);
  ASSERT_EQ(found->batches.size(), 1u);  // what the audit needs and the journal does not have
  EXPECT_EQ(found->batches[0].batch, 2u);
  ASSERT_EQ(found->batches[0].records.size(), 1u);
  EXPECT_EQ(found->batches[0].records[0].step(), 3u);
}

TEST(Resume, EvaluationsThatOnlyTheCheckpointHasAreHandedIn) {
  MemoryJournal journal;
  EvalEntry known;
  known.generation = 1;
  known.step = 1;
  StepEntry third = step_at(2);
  third.generation = 2;
  const std::vector<JournalEntry> entries{
      LedgerEntry{{1, {0, Phase::kTrain}, ResumePoint{2, Phase::kTrain}, false, ""}},
      LedgerEntry{{2, {2, Phase::kTrain}, std::nullopt, false, ""}},
      step_at(0),
      step_at(1),
      third,
      known};
  ASSERT_TRUE(journal.commit(entries, 0).is_ok());
  Manifest manifest;
  manifest.member = 1;
  manifest.resume.step = 3;
  wire::StepRecords& batch = manifest.unacknowledged.emplace_back(batch_of(1, {}));
  for (const Step step : {1, 2, 3, 4}) {
    batch.add_evals()->set_step(step);
    batch.mutable_evals(batch.evals_size() - 1)->set_samples(10);
  }
  const auto found = recover_steps(journal, manifest, *journal.load());
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  ASSERT_EQ(found->evals.size(), 2u);  // one is known, one is of weights that are lost
  EXPECT_EQ(found->evals[0].step, 2u);
  EXPECT_EQ(found->evals[0].generation, 1u);
  EXPECT_EQ(found->evals[1].step, 3u);
  EXPECT_EQ(found->evals[1].generation, 2u);
}

TEST(Resume, ARecordOfAStepThatItsGenerationLostIsNoProof) {
  MemoryJournal journal;
  RecordsEntry batch{1, 1, 1, {}};
  for (Step step = 0; step < 3; ++step) batch.records.emplace_back().set_step(step);
  const std::vector<JournalEntry> entries{
      LedgerEntry{{1, {0, Phase::kTrain}, ResumePoint{2, Phase::kTrain}, false, ""}},
      LedgerEntry{{2, {2, Phase::kTrain}, std::nullopt, false, ""}}, batch};
  ASSERT_TRUE(journal.commit(entries, 0).is_ok());
  Manifest manifest;
  manifest.resume.step = 2;
  EXPECT_TRUE(recover_steps(journal, manifest, *journal.load()).is_ok());
  manifest.resume.step = 3;
  EXPECT_EQ(recover_steps(journal, manifest, *journal.load()).status().code(), Code::kBadData);
}

// A run with real checkpoints of steps 1 and 2 and all records of both.
class ResumeTest : public ::testing::Test {
 protected:
  ResumeTest() {
    commit(LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, "start"}});
    commit(step_at(0));
    add(1);
    add(2);
  }

  void commit(JournalEntry entry) {
    EXPECT_TRUE(journal_.commit(std::vector<JournalEntry>{std::move(entry)}, 0).is_ok());
  }
  std::string path(Step step) const { return dir_ + "/" + checkpoint_name({step, 1, 1}); }

  void add(Step step) {
    const auto info = write_small_checkpoint(dir_, step);
    ASSERT_TRUE(info.is_ok());
    CheckpointEntry entry;
    entry.name = info->name;
    entry.step = step;
    entry.generation = entry.member = 1;
    entry.manifest_sha256 = info->manifest_sha256;
    commit(entry);
  }
  // Neither damage nor absence: a name that cannot be opened as long as the loop is there.
  static void make_unreadable(const std::string& file) {
    std::filesystem::rename(file, file + ".away");
    std::filesystem::create_symlink(file, file);
  }
  static void make_readable(const std::string& file) {
    std::filesystem::rename(file + ".away", file);
  }
  static void damage(const std::string& file) { std::ofstream(file) << "damaged"; }

  Result<ResumePlan> plan() {
    return plan_resume(dir_, journal_, *journal_.load(), small_options(), *logger_);
  }

  TemporaryDirectory temporary_;
  std::string dir_ = temporary_.path();
  MemoryJournal journal_;
  std::unique_ptr<Logger> logger_ = null_logger();
};

TEST_F(ResumeTest, TheNewestGoodCheckpointIsTakenAndADamagedOnePassedOver) {
  commit(step_at(1));
  ASSERT_TRUE(plan().is_ok()) << plan().status().message();
  EXPECT_EQ(plan()->path, path(2));
  damage(path(2) + "/model.safetensors");
  EXPECT_EQ(plan()->path, path(1));
  damage(path(2) + "/manifest.json");
  EXPECT_EQ(plan()->path, path(1));
}

TEST_F(ResumeTest, ADroppedCheckpointThatTheRunGoesBackToCountsAgain) {
  commit(step_at(1));
  CheckpointEntry dropped = journal_.load()->checkpoints.at(0);
  dropped.state = CheckpointState::kDropped;
  commit(dropped);
  damage(path(2) + "/model.safetensors");
  const auto back = plan();
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back->path, path(1));
  ASSERT_TRUE(journal_.commit(back->entries, 0).is_ok());
  EXPECT_EQ(journal_.load()->checkpoints.at(0).state, CheckpointState::kComplete);
}

// Returns the sentence of the event in which a plan says that it goes back past lost checkpoints.
std::string told_loss(const ResumePlan& plan) {
  for (const JournalEntry& entry : plan.entries) {
    const auto* event = std::get_if<EventEntry>(&entry);
    if (event != nullptr && event->kind == "checkpoints_lost") return event->text;
  }
  return "";
}

TEST_F(ResumeTest, LostCheckpointsAreNamedWithTheStepsThatTheyHeld) {
  commit(step_at(1));
  commit(step_at(2));
  add(3);
  EXPECT_EQ(told_loss(*plan()), "");
  std::filesystem::remove_all(path(3));
  EXPECT_THAT(told_loss(*plan()), AllOf(HasSubstr(checkpoint_name({3, 1, 1})),
                                        HasSubstr("1 step again"), HasSubstr("/run/checkpoints")));
  damage(path(2) + "/model.safetensors");
  const auto far = plan();
  ASSERT_TRUE(far.is_ok()) << far.status().message();
  EXPECT_EQ(far->path, path(1));
  EXPECT_THAT(told_loss(*far),
              AllOf(HasSubstr(checkpoint_name({3, 1, 1})), HasSubstr(checkpoint_name({2, 1, 1})),
                    HasSubstr("2 steps again")));
  ASSERT_TRUE(journal_.commit(far->entries, 0).is_ok());
  EXPECT_EQ(told_loss(*plan()), "");  // they are no part of the run any more
}

TEST_F(ResumeTest, ACheckpointThatCannotBeReadNowIsNotRolledBack) {
  commit(step_at(1));
  for (const char* file : {"/model.safetensors", "/manifest.json"}) {
    make_unreadable(path(2) + file);
    EXPECT_THAT(plan(), FailsWith(Code::kInternal, Names(path(2)))) << file;
    make_readable(path(2) + file);
    EXPECT_EQ(plan()->path, path(2));
  }
  make_unreadable(path(1) + "/manifest.json");  // the plan does not need that one
  EXPECT_EQ(plan()->path, path(2));
}

TEST_F(ResumeTest, ARunWhoseCheckpointsAreAllLostDoesNotBeginAgainByItself) {
  commit(step_at(1));
  damage(path(1) + "/model.safetensors");
  std::filesystem::remove_all(path(2));
  const Status status = plan().status();
  EXPECT_THAT(status, FailsWith(Code::kBadData,
                                Names(checkpoint_name({1, 1, 1}), checkpoint_name({2, 1, 1}))));
}

TEST_F(ResumeTest, ARunWithoutAnyCheckpointBeginsAgain) {
  MemoryJournal journal;
  const auto plan =
      plan_resume(dir_ + "/none", journal, *journal.load(), small_options(), *logger_);
  ASSERT_TRUE(plan.is_ok());
  EXPECT_EQ(plan->path, "");
}

TEST_F(ResumeTest, ACheckpointOfStepsThatWereComputedAgainIsNotMissed) {
  MemoryJournal journal;
  CheckpointEntry before;
  before.name = checkpoint_name({4, 1, 1});
  before.step = 4;
  before.generation = before.member = 1;
  const std::vector<JournalEntry> entries{
      LedgerEntry{{1, {0, Phase::kTrain}, ResumePoint{3, Phase::kTrain}, false, "start"}},
      LedgerEntry{{2, {3, Phase::kTrain}, std::nullopt, false, "death"}}, before};
  ASSERT_TRUE(journal.commit(entries, 0).is_ok());
  const auto plan =
      plan_resume(dir_ + "/none", journal, *journal.load(), small_options(), *logger_);
  ASSERT_TRUE(plan.is_ok()) << plan.status().message();
  EXPECT_EQ(plan->path, "");
}

TEST_F(ResumeTest, ACheckpointWithoutTheRecordsOfItsStepsGivesWayToAnOlderOne) {
  const auto older = plan();  // no member ever reported step 2
  ASSERT_TRUE(older.is_ok()) << older.status().message();
  EXPECT_EQ(older->path, path(1));
  RecordsEntry batch{1, 1, 1, {}};
  batch.records.emplace_back().set_step(1);
  commit(batch);
  const auto newest = plan();
  ASSERT_TRUE(newest.is_ok()) << newest.status().message();
  EXPECT_EQ(newest->path, path(2));
  const auto recovered =
      std::count_if(newest->entries.begin(), newest->entries.end(), [](const JournalEntry& entry) {
        const auto* step = std::get_if<StepEntry>(&entry);
        return step != nullptr && step->step == 1;
      });
  EXPECT_EQ(recovered, 1);
}

TEST_F(ResumeTest, OnlyALineageThatGoesOnElsewhereIsCut) {
  commit(step_at(1));
  const auto cuts = [this] {
    const auto entries = plan()->entries;
    return std::count_if(entries.begin(), entries.end(), [](const JournalEntry& entry) {
      return std::holds_alternative<RollbackEntry>(entry);
    });
  };
  EXPECT_EQ(cuts(), 1);  // the generation is open: how far it came is unknown
  commit(LedgerEntry{{1, {0, Phase::kTrain}, ResumePoint{2, Phase::kTrain}, false, "start"}});
  EXPECT_EQ(cuts(), 0);
  damage(path(2) + "/model.safetensors");
  EXPECT_EQ(cuts(), 1);
}

// small_options() has 4 steps, and the newest checkpoint is of step 2.
TEST_F(ResumeTest, ARunThatItsScriptHasEndedStaysCompleteUnlessItIsToBeLonger) {
  commit(step_at(1));
  EvalEntry eval;
  eval.generation = 1;
  eval.step = 2;
  commit(eval);
  EXPECT_EQ(plan()->point.phase, Phase::kTrain);
  commit(SettingEntry{kEndSetting, "2 of 4"});
  EXPECT_EQ(plan()->point.phase, Phase::kEnd);
  commit(SettingEntry{kEndSetting, "2 of 3"});
  const auto longer = plan();
  EXPECT_EQ(longer->point.phase, Phase::kTrain);
  ASSERT_TRUE(journal_.commit(longer->entries, 0).is_ok());
  EXPECT_EQ(journal_.load()->settings.count(kEndSetting), 0u);
}

}  // namespace
}  // namespace lockstep::coordinator
