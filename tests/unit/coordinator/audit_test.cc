#include "coordinator/audit/audit.h"

#include "comm/run/job/job.pb.h"
#include "data/dataset/facts.h"
#include "data/dataset/memory_dataset.h"
#include "data/loader/job_order.h"
#include "data/view/mixed_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/audit_world.h"

namespace lockstep::coordinator {
namespace {

class AuditTest : public AuditWorld {};

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

TEST_F(AuditTest, ABatchOfSeveralStepsCountsOnce) {
  commit({IdentityEntry{kTurnsKey, "2"}});
  row(1, 0, 14);
  std::vector<wire::StepRecord> records;
  for (const wire::StepRecord& record : train(*data_, 0, 7))
    for (const Step turn : {0, 1}) {
      records.push_back(record);
      records.back().set_step(2 * record.step() + turn);
    }
  report(1, records);
  const AuditReport found = checked();
  EXPECT_TRUE(found.is_clean()) << audit_text(found);
  EXPECT_THAT(audit_text(found), Names("seed 11, 2 steps a batch\n", "14 steps, 50 samples"));
  EXPECT_EQ(last_line(found), "epochs 1, samples 50: lost 0, repeated 0\n");
  EXPECT_THAT(audit_json(found, {}), Names("\"steps_a_batch\": 2"));
}

TEST_F(AuditTest, OneOfABatchsStepsWithOtherSamplesIsFound) {
  commit({IdentityEntry{kTurnsKey, "2"}});
  row(1, 0, 14);
  const std::vector<wire::StepRecord> batches = train(*data_, 0, 7);
  std::vector<wire::StepRecord> records;
  for (Step step = 0; step < 14; ++step) {
    records.push_back(batches[step == 5 ? 3 : step / 2]);  // the first turn of the next batch
    records.back().set_step(step);
  }
  report(1, records);
  EXPECT_FALSE(checked().is_clean());
}

// The ledger is of positions, as ever; the weights say which samples stand there.
TEST_F(AuditTest, SamplesThatAreDrawnByWeightsAreToldAsDrawn) {
  row(1, 0, 7);
  report(1, train(*data_, 0, 7));
  EXPECT_EQ(audit_json(checked(), {}).find("drawn"), std::string::npos);
  EXPECT_EQ(audit_text(checked()).find("drawn"), std::string::npos);
  commit({IdentityEntry{kDrawnKey, "50 weights, 4612caea"}});
  const AuditReport found = checked();
  EXPECT_TRUE(found.is_clean());
  EXPECT_THAT(audit_text(found),
              Names("seed 11, drawn with replacement by 50 weights, 4612caea\n"));
  EXPECT_EQ(last_line(found), "epochs 1, drawn samples 50: lost 0, repeated 0\n");
  EXPECT_THAT(audit_json(found, {}), Names("\"drawn\": \"50 weights, 4612caea\""));
}

TEST_F(AuditTest, WhatAStoppedRunHasNotReachedIsNotLost) {
  row(1, 0, 10);
  report(1, train(*data_, 0, 10));
  const AuditReport found = checked();
  EXPECT_TRUE(found.is_clean());
  EXPECT_EQ(last_line(found), "epochs 1, samples 74: lost 0, repeated 0\n");
  EXPECT_THAT(audit_text(found), Names("epoch 2", "3 of 7", "24 of 50"));
}

TEST_F(AuditTest, EvaluationsAreListedAndEndsOfEpochsWithoutOneAreToo) {
  row(1, 0, 28);
  report(1, train(*data_, 0, 28));
  EXPECT_THAT(audit_text(checked()), ::testing::Not(::testing::HasSubstr("evaluat")));
  for (const Step step : {3u, 14u, 17u}) commit({EvalEntry{1, step, 0, 10, 9, 0.5}});
  const AuditReport found = checked();
  EXPECT_EQ(found.evaluations, (std::vector<Step>{3, 14, 17}));
  EXPECT_EQ(found.not_evaluated, (std::vector<Step>{7, 21}));  // 28 may still come
  EXPECT_TRUE(found.is_clean());
  EXPECT_THAT(audit_text(found), Names("evaluations 3", "after step 17", "after step 7 21"));
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
  EXPECT_THAT(audit_text(found), Names("epoch 1, step 4, slot 1", "[26, 29)"));
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
  EXPECT_THAT(audit_text(found), Names("steps 3-6 of generation 1"));
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
  EXPECT_EQ(audit(*journal_).status().code(), Code::kConfig);
  MemoryJournal empty;
  EXPECT_EQ(audit(empty).status().code(), Code::kUsage);
}

std::unique_ptr<data::Dataset> in_memory(uint64_t samples, uint8_t pixel) {
  auto made = data::make_memory_dataset({1, 1, 1}, std::vector<uint8_t>(samples, pixel),
                                        std::vector<uint32_t>(samples));
  return std::move(made).value();
}

// Holds what a mixture of three data sets freezes when it starts.
struct MixedRun {
  MixedRun() {
    std::vector<data::WeightedDataset> sets;
    sets.push_back({in_memory(30, 1), 3});
    sets.push_back({in_memory(7, 2), 2});
    sets.push_back({in_memory(90, 3), 1});
    train = std::move(data::mix(std::move(sets))).value();
    job.set_seed(kSeed);
    job.mutable_train()->set_global_batch(8);
    job.mutable_train()->set_slots(kSlots);
    job.mutable_data()->set_mix_weight(3);
    job.mutable_data()->add_mix()->set_weight(2);
    job.mutable_data()->add_mix()->set_weight(1);
    facts = data::make_data_facts(*train, nullptr);
  }
  std::unique_ptr<data::Dataset> train;
  wire::JobSpec job;
  wire::DataFacts facts;
};

TEST(RunOrder, OfAMixtureIsReadBackFromTheIdentityOfTheRun) {
  MixedRun run;
  for (const char* shuffle : {"sample", "block"}) {
    run.job.mutable_data()->set_shuffle(shuffle);
    run.job.mutable_data()->set_block_samples(4);
    run.job.mutable_data()->set_window_blocks(2);
    const auto order = order_of(identity_of(run.job, run.facts));
    ASSERT_TRUE(order.is_ok()) << order.status().message();
    EXPECT_EQ(order->spec, data::job_order(run.job, *run.train));
    EXPECT_EQ(order->shape.samples, 60u);
  }
}

TEST(RunOrder, AMixtureThatDoesNotMakeTheEpochIsRefused) {
  MixedRun run;
  run.facts.mutable_mixed(0)->set_samples(29);
  EXPECT_EQ(order_of(identity_of(run.job, run.facts)).status().code(), Code::kBadData);
  run.facts.mutable_mixed(1)->set_weight(0);
  EXPECT_EQ(order_of(identity_of(run.job, run.facts)).status().code(), Code::kBadData);
  run.facts.clear_mixed();
  EXPECT_EQ(order_of(identity_of(run.job, run.facts)).status().code(), Code::kBadData);
}

TEST(RunOrder, SamplesOfAMixtureAreProvenInEachOfItsDataSets) {
  const MixedRun run;
  OrderedPlan plan(*order_of(identity_of(run.job, run.facts)));
  data::LoaderOptions options;
  options.shape = {60, 8, kSlots};
  options.order = data::job_order(run.job, *run.train);
  options.end_step = 24;  // three epochs
  options.slots = {0, kSlots};
  const auto loader = data::Loader::start(*run.train, options);
  ASSERT_TRUE(loader.is_ok()) << loader.status().message();
  while (const data::Batch* batch = *(*loader)->next())
    EXPECT_EQ(batch->digest, plan.digest(plan.step(batch->step), batch->slot));
}

// A step whose slot 1 killed its readers, and one of which nothing was left.
TEST_F(AuditTest, SamplesSkippedByPolicyAreAClassOfTheirOwnAndNamed) {
  row(1, 0, std::nullopt);
  report(1, train(*data_, 0, 5));
  commit({SkipEntry{1, 3, {1, 2}, "it killed two workers"},
          SkipEntry{1, 4, {0, kSlots}, "its loss is no number"},
          RollbackEntry{{2, Phase::kTrain}, "", "resume"}});
  row(2, 2, 7);
  auto records = train(*data_, 2, 7);
  records[1].mutable_slots()->DeleteSubrange(1, 1);
  records[2].clear_slots();
  report(2, records);
  const AuditReport found = checked();
  EXPECT_TRUE(found.is_clean()) << audit_text(found);
  EXPECT_EQ(last_line(found), "epochs 1, samples 50: lost 0, repeated 0, skipped 11\n");
  EXPECT_EQ(found.applied(), 39u);
  ASSERT_EQ(found.left_out.size(), 2u);
  EXPECT_EQ(found.left_out[0].positions.begin, 26u);
  EXPECT_EQ(found.left_out[0].positions.end, 29u);
  EXPECT_EQ(found.left_out[1].slots, (SlotRun{0, kSlots}));
  const std::string text = audit_text(found);
  EXPECT_THAT(text, Names("epoch 1, step 4, slots 1-1", "[26, 29)", "it killed two workers"));
  EXPECT_THAT(text, Names("50 samples", "39", "11"));
  const std::string json = audit_json(found, {});
  EXPECT_NE(json.find("\"skipped\": 11"), std::string::npos) << json;
  EXPECT_NE(json.find("\"reason\": \"its loss is no number\""), std::string::npos) << json;
}

TEST_F(AuditTest, ASampleThatWasDeliveredThoughItWasToBeSkippedIsAFault) {
  commit({SkipEntry{1, 3, {1, 2}, "it killed two workers"}});
  row(2, 0, 7);
  report(2, train(*data_, 0, 7));
  const AuditReport found = checked();
  ASSERT_EQ(found.fault_count, 1u);
  EXPECT_EQ(found.faults[0].slot.delivery, Delivery::kUnwanted);
  EXPECT_EQ(found.repeated, 3u);
  EXPECT_THAT(audit_text(found), Names("epoch 1, step 4, slot 1"));
}

// The step was done before it was known to be harmful.
TEST_F(AuditTest, ASkipDoesNotHoldInTheGenerationThatItNamesNorInOlderOnes) {
  row(1, 0, 3);
  row(2, 3, 7);
  report(1, train(*data_, 0, 3));
  report(2, train(*data_, 3, 7));
  commit({SkipEntry{2, 3, {1, 2}, "spike"}, SkipEntry{2, 1, {0, 1}, "spike"}});
  const AuditReport found = checked();
  EXPECT_TRUE(found.is_clean()) << audit_text(found);
  EXPECT_EQ(last_line(found), "epochs 1, samples 50: lost 0, repeated 0\n");
}

// A slot that is left out excuses no other slot.
TEST_F(AuditTest, AMissingSlotBesideASkippedOneIsLost) {
  commit({SkipEntry{1, 3, {1, 2}, "it killed two workers"}});
  row(2, 0, 7);
  auto records = train(*data_, 0, 7);
  records[3].mutable_slots()->DeleteSubrange(1, 2);
  report(2, records);
  const AuditReport found = checked();
  EXPECT_EQ(found.fault_count, 1u);
  EXPECT_EQ(found.lost, 3u);
  EXPECT_EQ(last_line(found), "epochs 1, samples 50: lost 3, repeated 0, skipped 3\n");
}

TEST_F(AuditTest, ATaintedLineageAndWhoWasPutOutAreTold) {
  row(1, 0, 7);
  report(1, train(*data_, 0, 7));
  EXPECT_EQ(audit_text(checked()).find("tainted"), std::string::npos);
  commit({CheckEntry{1, 4, false, "node7", 2, false, true}});
  const AuditReport found = checked();
  const std::string text = audit_text(found);
  EXPECT_THAT(text, AllOf(Names("step 4", "worker 2", "node7"), Says("tainted")));
  const std::string json = audit_json(found, {});
  EXPECT_NE(json.find("\"tainted_from_step\": 4"), std::string::npos) << json;
  EXPECT_NE(json.find("\"node\": \"node7\""), std::string::npos) << json;
}

}  // namespace
}  // namespace lockstep::coordinator
