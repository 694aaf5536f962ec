#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/doctor/find_limit.h"
#include "tests/support/fails_with.h"

namespace lockstep::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A row of a table: rates in samples a second, 0: that rung is not there.
struct Table {
  double raw_cold = 0;
  double raw = 100'000;
  double decode = 0;
  double samples = 20'000;
  double loader_cold = 0;
  double loader = 18'000;
  double trainer = 1'000;
  double step_growth = 1.9;  // t(2B) / t(B)
  double resident = 0;
};

Measurements measured(const Table& table, Setting setting = {}) {
  if (setting.slots == 0) {
    setting.samples = 60'000;
    setting.global_batch = 64;
    setting.slots = 2;
    setting.slot_samples = 32;
    setting.workers = 2;
    setting.cores = 4;
    setting.data_threads = 4;
    setting.prefetch_batches = 4;
  }
  setting.is_encoded = table.decode > 0;
  Measurements out;
  out.setting = setting;
  const auto add = [&out](RungKind kind, double rate) {
    if (rate > 0) out.rungs.push_back({kind, rate_of({rate}), 0, ""});
  };
  add(RungKind::kRawCold, table.raw_cold);
  add(RungKind::kRaw, table.raw);
  add(RungKind::kDecode, table.decode);
  add(RungKind::kSamples, table.samples);
  add(RungKind::kLoaderCold, table.loader_cold);
  add(RungKind::kLoader, table.loader);
  add(RungKind::kTrainer, table.trainer);
  add(RungKind::kResident, table.resident);
  out.step_s = 32 / table.trainer;
  out.double_step_s = table.step_growth * out.step_s;
  return out;
}

Setting with_threads(uint32_t threads) {
  Setting setting = measured({}).setting;
  setting.data_threads = threads;
  return setting;
}

std::string only_change(const Measurements& all) {
  const FaultFinding found = decide(all);
  if (found.changes.size() != 1) return std::to_string(found.changes.size()) + " changes";
  return found.changes[0].key + "=" + found.changes[0].value;
}

TEST(Decide, ALoaderThatIsFastEnoughIsNoFault) {
  const FaultFinding found = decide(measured({}));
  EXPECT_EQ(found.fault, Fault::kNone);
  EXPECT_THAT(found.changes, IsEmpty());
  EXPECT_THAT(found.reason, Says("18.00", "trainer"));
}

TEST(Decide, ALoaderATenthFasterThanTheTrainerIsEnoughAndLessIsNot) {
  EXPECT_EQ(decide(measured({.loader = 1'101})).fault, Fault::kNone);
  EXPECT_NE(decide(measured({.loader = 1'099})).fault, Fault::kNone);
}

TEST(Decide, SlowColdReadsAreTheStorage) {
  const FaultFinding found = decide(measured({.raw_cold = 100, .loader_cold = 95}));
  EXPECT_EQ(found.fault, Fault::kStorage);
  EXPECT_THAT(found.reason, Says("not in memory", "100 samples/s"));
  // The advice tells what the machine's memory would do for it.
  EXPECT_THAT(found.advice.back(), HasSubstr("first epoch"));
}

TEST(Decide, AStorageThatIsSlowFromMemoryTooIsTheStorage) {
  const Table remote{
      .raw_cold = 100, .raw = 110, .decode = 5'000, .samples = 90, .loader_cold = 80, .loader = 85};
  EXPECT_EQ(decide(measured(remote)).fault, Fault::kStorage);
}

TEST(Decide, SlowDecodingOnAllCoresIsDecode) {
  const Table slow{
      .raw_cold = 5'000, .decode = 200, .samples = 190, .loader_cold = 170, .loader = 180};
  const FaultFinding found = decide(measured(slow, with_threads(4)));
  EXPECT_EQ(found.fault, Fault::kDecode);
  EXPECT_THAT(found.changes, IsEmpty());
  EXPECT_THAT(found.reason, HasSubstr("4 cores"));
}

TEST(Decide, SlowDecodingWhileCoresAreIdleIsThreadsAndSaysHowMany) {
  const Table slow{
      .raw_cold = 5'000, .decode = 200, .samples = 190, .loader_cold = 170, .loader = 180};
  const FaultFinding found = decide(measured(slow, with_threads(1)));
  EXPECT_EQ(found.fault, Fault::kThreads);
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(found.changes[0].key, "data.threads");
  EXPECT_EQ(found.changes[0].value, "4");
  EXPECT_FALSE(found.changes[0].is_identity);
}

TEST(Decide, AugmentationThatIsSlowerThanDecodingCountsAsWorkOfTheThreads) {
  const Table slow{.decode = 5'000, .samples = 300, .loader = 280};
  EXPECT_EQ(decide(measured(slow, with_threads(4))).fault, Fault::kDecode);
  EXPECT_EQ(decide(measured(slow, with_threads(2))).fault, Fault::kThreads);
}

TEST(Decide, OfTwoPlacesBelowTheTrainerTheNarrowerOneIsNamed) {
  const Table both{.raw_cold = 800, .decode = 100, .samples = 95, .loader_cold = 90, .loader = 92};
  EXPECT_EQ(decide(measured(both)).fault, Fault::kDecode);
}

TEST(Decide, RatesNoFurtherApartThanTwoTimesAreOnePlaceAndItsLowestRungIsNamed) {
  const Table noisy{
      .raw_cold = 90, .decode = 5'000, .samples = 70, .loader_cold = 50, .loader = 70};
  EXPECT_EQ(decide(measured(noisy)).fault, Fault::kStorage);
}

TEST(Decide, ColdBatchesThatAreSlowWhereColdReadsAreNotAreReadOneAtATime) {
  const Table waits{
      .raw_cold = 5'000, .decode = 8'000, .samples = 7'000, .loader_cold = 300, .loader = 6'000};
  EXPECT_EQ(decide(measured(waits)).fault, Fault::kStorage);
}

TEST(Decide, StoredSamplesThatAreOnlySlowAsBatchesAreBatching) {
  const FaultFinding found = decide(measured({.samples = 1'500, .loader = 800}));
  EXPECT_EQ(found.fault, Fault::kBatching);
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(found.changes[0].key, "data.prefetch_batches");
  EXPECT_EQ(found.changes[0].value, "8");
}

TEST(Decide, AStepThatHardlyGrowsWithItsSamplesIsATinyBatch) {
  const FaultFinding found = decide(measured({.step_growth = 1.1}));
  EXPECT_EQ(found.fault, Fault::kTinyBatch);
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(found.changes[0].key, "train.global_batch");
  // a = 0.9 t, b = 0.1 t / 32: 2a/b is 18 times 32, of each of two slots, as a power of two times
  // B.
  EXPECT_EQ(found.changes[0].value, "2048");
  EXPECT_TRUE(found.changes[0].is_identity);
}

TEST(Decide, AStepThatDoesNotGrowAtAllGetsABatchWithALimit) {
  const FaultFinding found = decide(measured({.step_growth = 0.97}));
  EXPECT_EQ(found.fault, Fault::kTinyBatch);
  EXPECT_EQ(found.changes[0].value, "4096");
}

TEST(Decide, ABatchIsNeverAskedToBeLargerThanTheData) {
  Measurements all = measured({.step_growth = 1.1});
  all.setting.samples = 300;
  EXPECT_EQ(decide(all).changes[0].value, "256");
  all.setting.samples = 100;
  EXPECT_EQ(decide(all).fault, Fault::kTinyBatch);
  EXPECT_THAT(decide(all).changes, IsEmpty());
}

TEST(Decide, ADataFaultComesBeforeATinyBatch) {
  EXPECT_EQ(decide(measured({.raw_cold = 10, .loader_cold = 9, .step_growth = 1.0})).fault,
            Fault::kStorage);
}

TEST(Decide, WithoutTheLargerStepThereIsNoTinyBatch) {
  Measurements all = measured({.step_growth = 1.0});
  all.double_step_s = 0;
  EXPECT_EQ(decide(all).fault, Fault::kNone);
}

TEST(Decide, OnAGpuATinyBatchIsLaunchesAndGraphsComeBeforeALargerBatch) {
  Measurements all = measured({.step_growth = 1.1});
  all.setting.is_on_gpu = true;
  EXPECT_EQ(only_change(all), "train.global_batch=2048") << "no graph can hold this job";
  all.setting.can_use_graphs = true;
  EXPECT_THAT(decide(all).advice, ::testing::Contains(HasSubstr("train.graph=on")));
  EXPECT_EQ(only_change(all), "train.graph=on");
  EXPECT_FALSE(decide(all).changes[0].is_identity);
  all.setting.uses_graphs = true;
  EXPECT_EQ(only_change(all), "train.global_batch=2048");
  EXPECT_THAT(decide(all).advice, ::testing::Not(::testing::Contains(HasSubstr("train.graph"))));
}

TEST(Decide, ATrainerThatIsFasterOnABatchOfTheGpuWaitsForCopies) {
  Measurements all = measured({.step_growth = 1.1, .resident = 1'500});
  all.setting.is_on_gpu = true;
  all.setting.input_bytes = 1'000'000;
  const FaultFinding found = decide(all);
  EXPECT_EQ(found.fault, Fault::kCopy);
  EXPECT_THAT(found.reason, Says("1500 samples/s", "1.50"));
  EXPECT_THAT(found.reason, HasSubstr("32 MB"));
  // Each worker has one slot, which is copied while nothing is computed.
  EXPECT_EQ(only_change(all), "train.slots=4");
  EXPECT_TRUE(found.changes[0].is_identity);
  all.setting.global_batch = 3;
  EXPECT_EQ(only_change(all), "0 changes") << "a slot has a sample at least";
  all.setting.global_batch = 64;
  all.setting.slots = 4;
  EXPECT_EQ(only_change(all), "0 changes");
}

TEST(Decide, ATrainerATenthFasterOnABatchOfTheGpuIsHeldBackAndLessIsNot) {
  EXPECT_EQ(decide(measured({.resident = 1'101})).fault, Fault::kCopy);
  EXPECT_EQ(decide(measured({.resident = 1'099})).fault, Fault::kNone);
}

TEST(Decide, TheGpusOwnBatchIsNoStageOfTheData) {
  const Table slow{.raw = 90, .samples = 80, .loader = 70, .resident = 10};
  EXPECT_EQ(decide(measured(slow)).fault, Fault::kStorage);
}

TEST(Decide, ColdReadsThatAreFasterInOrderGetBlocksWhereTheJobHasNone) {
  Measurements all = measured({.raw_cold = 100, .loader_cold = 95});
  all.rungs.front().limit = 201;
  EXPECT_EQ(only_change(all), "0 changes");
  all.setting.can_shuffle_blocks = true;
  EXPECT_EQ(only_change(all), "data.shuffle=block");
  EXPECT_TRUE(decide(all).changes[0].is_identity);
  all.rungs.front().limit = 199;
  EXPECT_EQ(only_change(all), "0 changes");
}

TEST(Decide, ColdBatchesThatWaitForReadsAreReadFurtherAhead) {
  Measurements all = measured(
      {.raw_cold = 5'000, .decode = 8'000, .samples = 7'000, .loader_cold = 300, .loader = 6'000});
  all.setting.read_ahead_mb = 64;
  all.setting.can_shuffle_blocks = true;  // reads are fast enough as they are
  all.rungs.front().limit = 50'000;
  EXPECT_EQ(only_change(all), "data.read_ahead_mb=256");
  EXPECT_FALSE(decide(all).changes[0].is_identity);
  all.setting.read_ahead_mb = 0;
  EXPECT_EQ(only_change(all), "data.read_ahead_mb=64");
}

TEST(Decide, OnAGpuThatComputesAllTheTimeLessPrecisionComesBeforeLargerSlots) {
  Measurements all = measured({.step_growth = 1.7});
  all.setting.is_on_gpu = true;
  all.setting.slots = 4;
  EXPECT_EQ(decide(all).fault, Fault::kNone);
  EXPECT_EQ(only_change(all), "train.precision=bf16");
  all.setting.precision = "bf16";
  EXPECT_EQ(only_change(all), "0 changes") << "one slot a worker would be copied while it waits";
  all.setting.slots = 8;
  EXPECT_EQ(only_change(all), "train.slots=4");
}

TEST(Decide, FewerSlotsAreForWhoHasSeveralAndComputesLargerOnesFaster) {
  Measurements all = measured({.step_growth = 1.7});
  EXPECT_EQ(only_change(all), "0 changes") << "a slot for each worker";
  all.setting.slots = 6;
  EXPECT_EQ(only_change(all), "0 changes") << "one worker would have more of them than the other";
  all.setting.slots = 8;
  EXPECT_EQ(only_change(all), "train.slots=4");
  all.double_step_s = 1.85 * all.step_s;
  EXPECT_EQ(only_change(all), "0 changes");
  all.double_step_s = 0;
  EXPECT_EQ(only_change(all), "0 changes");
}

TEST(RateOf, IsTheMedianWithTheExtremes) {
  const Rate odd = rate_of({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.low, 1);
  EXPECT_EQ(odd.high, 3);
  EXPECT_EQ(rate_of({1, 2, 4, 100}).median, 3);
}

}  // namespace
}  // namespace lockstep::doctor
