// The audit over journals whose digests come from real loaders.
#include "coordinator/audit/audit.h"

#include <gtest/gtest.h>

#include "coordinator/audit/audit_text.h"
#include "coordinator/identity.h"
#include "data/index/dataset.h"
#include "data/read/loader.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

constexpr uint64_t kSamples = 50;
constexpr uint64_t kSeed = 11;
constexpr uint32_t kSlots = 3;

std::unique_ptr<data::Dataset> dataset() {
  auto made = data::make_memory_dataset({1, 1, 1}, std::vector<uint8_t>(kSamples),
                                        std::vector<uint32_t>(kSamples));
  return std::move(made).value();
}

data::RunShape run_shape() {
  return {kSamples, 8, kSlots};
}

// A worker that trains: its loader, and the record of each step.
std::vector<wire::StepRecord> train(const data::Dataset& data, Step from, Step to,
                                    uint64_t seed = kSeed) {
  data::LoaderOptions options;
  options.shape = run_shape();
  options.seed = seed;
  options.first_step = from;
  options.end_step = to;
  options.slots = {0, kSlots};
  options.transforms = {};
  auto loader = data::Loader::start(data, options);
  EXPECT_TRUE(loader.is_ok()) << loader.status().message();
  std::vector<wire::StepRecord> records;
  for (Step step = from; step < to; ++step) records.emplace_back().set_step(step);
  while (true) {
    const auto batch = (*loader)->next();
    EXPECT_TRUE(batch.is_ok());
    if (*batch == nullptr) return records;
    wire::SlotDigest* digest = records[(*batch)->step - from].add_slots();
    digest->set_slot((*batch)->slot);
    digest->set_digest((*batch)->digest);
    digest->set_samples((*batch)->samples);
  }
}

class AuditTest : public ::testing::Test {
 protected:
  AuditTest() {
    wire::JobSpec job;
    job.set_seed(kSeed);
    job.mutable_train()->set_global_batch(run_shape().global_batch);
    job.mutable_train()->set_slots(kSlots);
    wire::DataFacts facts;
    facts.set_train_samples(kSamples);
    facts.set_train_fingerprint(data_->fingerprint());
    for (const IdentityEntry& entry : identity_of(job, facts)) commit({entry});
  }

  void commit(std::vector<JournalEntry> entries) {
    ASSERT_TRUE(journal_.commit(entries, 0).is_ok());
  }
  // Generation `g` did [from, to) of the lineage; its row is open without `to`.
  void row(Generation g, Step from, std::optional<Step> to) {
    std::optional<ResumePoint> last;
    if (to) last = ResumePoint{*to, Phase::kTrain};
    commit({LedgerEntry{{g, {from, Phase::kTrain}, last, false, "start"}},
            SlotMapEntry{g, {10 * g, 10 * g + 1}, {{0, 2}, {2, kSlots}}}});
  }
  void report(Generation g, std::vector<wire::StepRecord> records) {
    for (const wire::StepRecord& record : records) {
      StepEntry entry;
      entry.generation = g;
      entry.step = record.step();
      commit({entry});
    }
    commit({RecordsEntry{g, 10 * g, ++batch_, std::move(records)}});
  }
  AuditReport checked() {
    auto report = audit(journal_, [this](const AuditedStep& step) { steps_.push_back(step); });
    EXPECT_TRUE(report.is_ok()) << report.status().message();
    return std::move(*report);
  }
  static std::string last_line(const AuditReport& report) {
    const std::string text = audit_text(report);
    return text.substr(text.rfind('\n', text.size() - 2) + 1);
  }

  std::unique_ptr<data::Dataset> data_ = dataset();
  MemoryJournal journal_;
  uint64_t batch_ = 0;
  std::vector<AuditedStep> steps_;
};

TEST_F(AuditTest, EverySampleOfTwoEpochsIsProvenOnceAcrossGenerations) {
  row(1, 0, 5);
  row(3, 5, 14);
  report(1, train(*data_, 0, 6));  // step 5 was done by one member, which died
  report(3, train(*data_, 5, 14));
  const AuditReport found = checked();
  EXPECT_TRUE(found.is_clean()) << audit_text(found);
  EXPECT_EQ(last_line(found), "epochs 2, samples 100: lost 0, repeated 0\n");
  ASSERT_EQ(found.undone.size(), 1u);
  EXPECT_EQ(found.undone[0].generation, 1u);
  EXPECT_EQ(found.undone[0].from, 5u);
  EXPECT_EQ(found.undone[0].to, 6u);
  ASSERT_EQ(steps_.size(), 14u);
  EXPECT_EQ(steps_[5].generation, 3u);
  ASSERT_EQ(steps_[5].slots.size(), kSlots);
  EXPECT_EQ(steps_[5].slots[2].member, 31u);
  EXPECT_EQ(steps_[5].slots[2].rank, 1u);
  EXPECT_EQ(steps_[6].slots.size(), 2u);  // two samples for three slots
}

TEST_F(AuditTest, WhatAStoppedRunHasNotReachedIsNotLost) {
  row(1, 0, 10);
  report(1, train(*data_, 0, 10));
  const AuditReport found = checked();
  EXPECT_TRUE(found.is_clean());
  EXPECT_EQ(last_line(found), "epochs 1, samples 74: lost 0, repeated 0\n");
  EXPECT_NE(audit_text(found).find("epoch 2: 3 of 7 steps, 24 of 50 samples"), std::string::npos)
      << audit_text(found);
}

TEST_F(AuditTest, AnOpenRowEndsWhereTheStepsAreComplete) {
  row(1, 0, std::nullopt);
  report(1, train(*data_, 0, 4));
  commit({RecordsEntry{1, 11, 1, train(*data_, 4, 5)}});  // by one member, and then all was over
  EXPECT_EQ(checked().steps, 4u);
}

// The loader of one worker worked with another seed in one step: real samples, wrong ones.
TEST_F(AuditTest, OneWrongDeliveryIsNamedWithStepSlotAndPositions) {
  row(1, 0, 7);
  auto records = train(*data_, 0, 7);
  *records[3].mutable_slots(1) = train(*data_, 3, 4, kSeed + 1)[0].slots(1);
  report(1, records);
  const AuditReport found = checked();
  ASSERT_EQ(found.fault_count, 1u);
  EXPECT_EQ(found.faults[0].step, 3u);
  EXPECT_EQ(found.faults[0].slot.slot, 1u);
  EXPECT_EQ(found.faults[0].slot.delivery, Delivery::kOther);
  EXPECT_EQ(found.faults[0].slot.member, 10u);
  EXPECT_EQ(found.faults[0].slot.positions.begin, 26u);
  EXPECT_EQ(found.faults[0].slot.positions.end, 29u);
  EXPECT_EQ(last_line(found), "epochs 1, samples 50: lost 3, repeated 3\n");
  EXPECT_NE(audit_text(found).find("epoch 1, step 4, slot 1, positions [26, 29): other samples"),
            std::string::npos)
      << audit_text(found);
}

// A loader that began one step too early after a change: step 2 came twice, step 3 never.
TEST_F(AuditTest, ARepeatedStepIsNoSubstituteForTheOneThatWasDue) {
  row(1, 0, 7);
  auto records = train(*data_, 0, 7);
  *records[3].mutable_slots() = records[2].slots();
  report(1, records);
  const AuditReport found = checked();
  EXPECT_EQ(found.fault_count, kSlots);
  EXPECT_EQ(found.lost, 8u);
  EXPECT_EQ(found.repeated, 8u);
}

TEST_F(AuditTest, ReportsOfTwoRanksMustBothBeRight) {
  row(1, 0, 7);
  report(1, train(*data_, 0, 7));
  commit({RecordsEntry{1, 11, 1, train(*data_, 2, 3, kSeed + 1)}});
  EXPECT_EQ(checked().fault_count, kSlots);
}

TEST_F(AuditTest, AStepWithoutAnyRecordIsLost) {
  row(1, 0, 7);
  auto records = train(*data_, 0, 7);
  report(1, {records.begin(), records.begin() + 4});
  report(1, {records.begin() + 5, records.end()});
  const AuditReport found = checked();
  EXPECT_EQ(found.lost, 8u);
  EXPECT_EQ(found.faults.at(0).step, 4u);
  EXPECT_EQ(found.faults.at(0).slot.delivery, Delivery::kMissing);
}

TEST_F(AuditTest, GapsAndOverlapsOfTheLineageAreFaults) {
  row(1, 0, 3);
  row(2, 4, 6);
  row(3, 5, 7);
  report(1, train(*data_, 0, 3));
  report(2, train(*data_, 4, 6));
  report(3, train(*data_, 5, 7));
  const AuditReport found = checked();
  EXPECT_EQ(found.lost, 8u);      // step 3
  EXPECT_EQ(found.repeated, 8u);  // step 5
  EXPECT_EQ(found.faults.at(0).step, 3u);
  EXPECT_EQ(found.faults.at(kSlots).slot.delivery, Delivery::kTwice);
  EXPECT_EQ(found.faults.at(kSlots).generation, 3u);
}

TEST_F(AuditTest, WhatWasRolledBackDoesNotCountAndIsTold) {
  row(1, 0, std::nullopt);
  report(1, train(*data_, 0, 6));
  commit({RollbackEntry{{2, Phase::kTrain}, "", "resume"}});
  row(2, 2, 7);
  report(2, train(*data_, 2, 7));
  const AuditReport found = checked();
  EXPECT_TRUE(found.is_clean()) << audit_text(found);
  ASSERT_EQ(found.undone.size(), 1u);
  EXPECT_EQ(found.undone[0].from, 2u);
  EXPECT_EQ(found.undone[0].to, 6u);
  EXPECT_NE(audit_text(found).find("rolled back: steps 3-6 of generation 1"), std::string::npos);
}

TEST_F(AuditTest, StepsSkippedByTheLossScalerAreAClassOfTheirOwn) {
  row(1, 0, 7);
  auto records = train(*data_, 0, 7);
  records[2].set_skipped(true);
  report(1, records);
  const AuditReport found = checked();
  EXPECT_TRUE(found.is_clean());
  EXPECT_EQ(found.skipped, (std::vector<Step>{2}));
  EXPECT_EQ(found.skipped_samples, 8u);
}

TEST_F(AuditTest, AJournalOfAnotherOrderIsNotJudged) {
  commit({IdentityEntry{kOrderVersionKey, "999"}});
  EXPECT_EQ(audit(journal_).status().code(), Code::kConfig);
  MemoryJournal empty;
  EXPECT_EQ(audit(empty).status().code(), Code::kUsage);
}

}  // namespace
}  // namespace lockstep::coordinator
