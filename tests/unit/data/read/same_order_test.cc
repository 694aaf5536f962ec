// Every format: the same samples in the same order however the slots are shared out, on any number
// of threads, and from wherever in an epoch a run goes on.
#include <gtest/gtest.h>

#include "tests/unit/data/support/format_batches.h"

namespace lockstep::data {
namespace {

class SameOrderOf : public BatchesOfAFormat {
 protected:
  // All batches of a run that skips a slot.
  SeenBatches of_ranks(LoaderOptions wanted, const std::vector<SlotRun>& ranks) const {
    SeenBatches all;
    for (const SlotRun& slots : ranks) {
      wanted.slots = slots;
      SeenBatches seen = read(wanted);
      EXPECT_EQ(seen.error, "");
      const size_t before = all.by_slot.size();
      const size_t more = seen.by_slot.size();
      all.by_slot.merge(std::move(seen.by_slot));
      EXPECT_EQ(all.by_slot.size(), before + more) << "two ranks have a slot";
    }
    return all;
  }

  // Returns the part of a run from `step` on.
  static SeenBatches rest_of(const SeenBatches& run, Step step) {
    SeenBatches rest = run;
    std::erase_if(rest.by_slot, [&](const auto& batch) { return batch.first.first < step; });
    return rest;
  }

  // Inputs and labels of each step, one sample after another, whatever its slots.
  std::map<Step, std::pair<std::string, std::string>> by_step(uint32_t slots) const {
    LoaderOptions wanted = options(slots);
    wanted.keeps_padding = true;  // of which every slot may have less
    const SeenBatches seen = read(wanted);
    EXPECT_EQ(seen.error, "");
    std::map<Step, std::pair<std::string, std::string>> steps;
    for (const auto& [place, batch] : seen.by_slot) {
      steps[place.first].first += batch.inputs;
      steps[place.first].second += batch.labels;
    }
    return steps;
  }
};

INSTANTIATE_TEST_SUITE_P(, SameOrderOf, testing::ValuesIn(every_format_name()),
                         [](const auto& param) { return param.param; });

TEST_P(SameOrderOf, ForAnyNumberOfRanksAndThreads) {
  LoaderOptions wanted = options();
  wanted.skips.add(1, 1, 2);
  const SeenBatches one = of_ranks(wanted, {{0, 3}});
  ASSERT_GT(one.by_slot.size(), 2U);
  for (const auto& ranks : std::vector<std::vector<SlotRun>>{
           {{0, 1}, {1, 3}}, {{0, 2}, {2, 3}}, {{0, 1}, {1, 2}, {2, 3}}, {{0, 0}, {0, 3}, {3, 3}}})
    EXPECT_TRUE(of_ranks(wanted, ranks) == one) << ranks.size() << " ranks";
  for (const uint32_t threads : {2, 5}) {
    wanted.threads = threads;
    EXPECT_TRUE(of_ranks(wanted, {{0, 3}}) == one) << threads << " threads";
    EXPECT_TRUE(of_ranks(wanted, {{0, 1}, {1, 3}}) == one) << threads << " threads";
  }
}

TEST_P(SameOrderOf, ForAnyNumberOfSlots) {
  const auto one = by_step(1);
  ASSERT_GE(one.size(), 4U) << "steps";
  for (const uint32_t slots : {2, 5}) EXPECT_TRUE(by_step(slots) == one) << slots << " slots";
}

TEST_P(SameOrderOf, FromAnyStepOfAnEpoch) {
  LoaderOptions wanted = options();
  const uint64_t steps = steps_per_epoch(wanted.shape);
  ASSERT_GE(steps, 2U);
  for (const BlockShuffle blocks : {BlockShuffle{}, BlockShuffle{3, 2}}) {
    wanted.order.blocks = blocks;
    wanted.first_step = 0;
    const SeenBatches whole = read(wanted);
    ASSERT_EQ(whole.error, "");
    ASSERT_GT(rest_of(whole, wanted.end_step - 1).by_slot.size(), 0U);
    for (const Step first : {Step{1}, steps - 1, steps, steps + 1, 2 * steps - 1}) {
      wanted.first_step = first;
      EXPECT_TRUE(read(wanted) == rest_of(whole, first)) << "from step " << first;
    }
  }
}

TEST_P(SameOrderOf, FromTheMiddleOfAnEpochByEveryReader) {
  LoaderOptions wanted = options();
  const SeenBatches whole = read(wanted);
  ASSERT_EQ(whole.error, "");
  const uint64_t steps = steps_per_epoch(wanted.shape);
  for (const std::string reader : kReaders)
    for (const Step first : {Step{1}, steps + 2}) {
      PrefetchPolicy reading = reading_of(reader, 1);
      wanted.prefetch = &reading;
      wanted.first_step = first;
      wanted.threads = 2;
      EXPECT_TRUE(read(wanted) == rest_of(whole, first)) << reader << " from step " << first;
    }
}

}  // namespace
}  // namespace lockstep::data
