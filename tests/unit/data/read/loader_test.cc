#include "data/loader/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "comm/base/work_in_hand.h"
#include "comm/run/plan/digest.h"
#include "comm/run/plan/epoch_order.h"
#include "data/dataset/dataset.h"
#include "data/dataset/memory_dataset.h"
#include "data/open/open_dataset.h"
#include "data/transform/normalize.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kSamples = 103;
constexpr uint64_t kSeed = 11;

// Sample i is (i, i + 1, ...) modulo 256, label i % 7: a batch shows which samples it holds.
const Dataset& example() {
  static const auto dataset = [] {
    const SampleShape shape{1, 3, 5};
    std::vector<uint8_t> pixels;
    std::vector<uint32_t> labels;
    for (uint64_t i = 0; i < kSamples; ++i) {
      for (uint64_t k = 0; k < shape.elements(); ++k) pixels.push_back(static_cast<uint8_t>(i + k));
      labels.push_back(static_cast<uint32_t>(i % 7));
    }
    return std::move(make_memory_dataset(shape, pixels, labels)).value();
  }();
  return *dataset;
}

LoaderOptions options_for(const RunShape& shape, Step first, Step end, SlotRun slots,
                          uint32_t prefetch = 3) {
  LoaderOptions options;
  options.shape = shape;
  options.order = {kSeed, example().fingerprint(), kSamples};
  options.first_step = first;
  options.end_step = end;
  options.slots = slots;
  options.prefetch_batches = prefetch;
  return options;
}

// A batch by value.
struct Seen {
  Step step;
  uint32_t slot;
  uint64_t digest;
  std::vector<float> images;
  std::vector<int64_t> labels;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> all_batches(const LoaderOptions& options) {
  auto loader = Loader::start(example(), options);
  EXPECT_TRUE(loader.is_ok()) << loader.status().message();
  std::vector<Seen> seen;
  for (;;) {
    const auto next = loader.value()->next();
    EXPECT_TRUE(next.is_ok());
    const Batch* batch = next.value();
    if (batch == nullptr) return seen;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(batch->images) % 64, 0U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(batch->labels) % 64, 0U);
    const uint64_t elements = batch->shape.elements();
    seen.push_back({batch->step,
                    batch->slot,
                    batch->digest,
                    {batch->images, batch->images + batch->samples * elements},
                    {batch->labels, batch->labels + batch->samples}});
  }
}

// Computes the batch of (step, slot) from the plan, without the loader.
Seen planned(const RunShape& shape, Step step, uint32_t slot) {
  const StepPlan plan = plan_step(shape, step);
  const EpochOrder order({kSeed, example().fingerprint(), kSamples}, plan.epoch);
  const auto transform = Transform::create({"normalize"}, example().statistics());
  const PositionRange range = slot_positions(plan, slot, shape.slots);
  Seen seen{step, slot, planned_digest(order, plan, slot, shape.slots), {}, {}};
  std::vector<float> image(15);
  for (uint64_t p = range.begin; p < range.end; ++p) {
    transform.value().apply(stored_sample(example(), order.at(p)), example().shape(), image.data());
    seen.images.insert(seen.images.end(), image.begin(), image.end());
    seen.labels.push_back(label_of(example(), order.at(p)));
  }
  return seen;
}

RC_GTEST_PROP(Loader, DeliversThePlanForAnyRunOfSlots, ()) {
  const RunShape shape{kSamples, *rc::gen::inRange<uint64_t>(1, 120),
                       *rc::gen::inRange<uint32_t>(1, 9)};
  const auto begin = *rc::gen::inRange<uint32_t>(0, shape.slots + 1);
  const auto end = *rc::gen::inRange<uint32_t>(begin, shape.slots + 1);
  const auto first = *rc::gen::inRange<Step>(0, 300);
  const auto last = first + *rc::gen::inRange<Step>(0, 12);
  const auto prefetch = *rc::gen::inRange<uint32_t>(1, 5);
  std::vector<Seen> expected;
  for (Step step = first; step < last; ++step)
    for (uint32_t slot = begin; slot < end; ++slot)
      if (slot_positions(plan_step(shape, step), slot, shape.slots).size() > 0)
        expected.push_back(planned(shape, step, slot));
  RC_ASSERT(all_batches(options_for(shape, first, last, {begin, end}, prefetch)) == expected);
}

// The example, for those that change something about it.
class ExampleSamples : public StoredSamples, public Labels {
 public:
  const uint8_t* sample(uint64_t i) const override { return stored_sample(example(), i); }
  uint32_t label(uint64_t i) const override { return label_of(example(), i); }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }
};

// Notes what is in hand while a sample of it is read.
class WatchedSamples final : public ExampleSamples {
 public:
  explicit WatchedSamples(const WorkInHand& in_hand) : in_hand_(in_hand) {}

  const uint8_t* sample(uint64_t i) const override {
    for (const SlotInHand& slot : in_hand_.get().slots) {
      if (seen_.empty() || seen_.back() != slot) seen_.push_back(slot);
    }
    return ExampleSamples::sample(i);
  }

  const std::vector<SlotInHand>& seen() const { return seen_; }  // once all is read

 private:
  const WorkInHand& in_hand_;
  mutable std::vector<SlotInHand> seen_;
};

TEST(Loader, WhatIsReadIsInHandUntilItIsRead) {
  WorkInHand in_hand = std::move(WorkInHand::make()).value();
  const auto watched = std::make_shared<const WatchedSamples>(in_hand);
  const Dataset dataset(example().facts(), watched);
  LoaderOptions options = options_for({kSamples, 20, 4}, 0, 2, {1, 3}, 3);
  options.in_hand = &in_hand;
  const auto loader = Loader::start(dataset, options);
  ASSERT_TRUE(loader.is_ok());
  while (loader.value()->next().value() != nullptr) {
  }
  const auto read = [](Step step, uint32_t slot) { return SlotInHand{step, slot, true}; };
  EXPECT_EQ(watched->seen(),
            (std::vector<SlotInHand>{read(0, 1), read(0, 2), read(1, 1), read(1, 2)}));
  EXPECT_TRUE(in_hand.get().slots.empty());
}

// Its files have changed: one sample has a label that was none.
class ChangedSamples final : public ExampleSamples {
 public:
  explicit ChangedSamples(uint64_t sample) : sample_(sample) {}
  uint32_t label(uint64_t i) const override { return i == sample_ ? example().classes() : 0; }

 private:
  const uint64_t sample_;
};

TEST(Loader, WhatCannotBeReadEndsTheBatchesBeforeItAndNotSooner) {
  const RunShape shape{kSamples, 20, 4};
  LoaderOptions options = options_for(shape, 0, 3, {0, 4}, 5);
  WorkInHand in_hand = std::move(WorkInHand::make()).value();
  options.in_hand = &in_hand;
  const uint64_t place = slot_positions(plan_step(shape, 1), 2, shape.slots).begin;
  const Dataset dataset(example().facts(), std::make_shared<const ChangedSamples>(
                                               EpochOrder(options.order, 0).at(place)));
  const auto loader = Loader::start(dataset, options);
  ASSERT_TRUE(loader.is_ok());
  for (int batch = 0; batch < 6; ++batch) ASSERT_NE(loader.value()->next().value(), nullptr);
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(loader.value()->next().status().code(), Code::kBadData);
  EXPECT_TRUE(in_hand.get().slots.empty());
}

TEST(Loader, ReadsNothingOfSkippedSlotsAndAllOfTheOthers) {
  const RunShape shape{kSamples, 20, 4};
  LoaderOptions options = options_for(shape, 2, 5, {1, 4});
  options.skips.add(3, 0, 2);
  options.skips.add(4, 0, 4);
  const std::vector<Seen> expected{planned(shape, 2, 1), planned(shape, 2, 2), planned(shape, 2, 3),
                                   planned(shape, 3, 2), planned(shape, 3, 3)};
  EXPECT_EQ(all_batches(options), expected);
}

TEST(Loader, OfAllRanksDeliversEverySampleOfAnEpochOnce) {
  const RunShape shape{kSamples, 20, 4};
  const uint64_t steps = steps_per_epoch(shape);
  std::multiset<float> delivered;  // the first pixel tells the sample
  for (const SlotRun run : {SlotRun{0, 1}, SlotRun{1, 3}, SlotRun{3, 4}})
    for (const Seen& seen : all_batches(options_for(shape, steps, 2 * steps, run)))
      for (size_t i = 0; i < seen.labels.size(); ++i) delivered.insert(seen.images[i * 15]);
  EXPECT_EQ(delivered.size(), kSamples);
  EXPECT_EQ(std::set<float>(delivered.begin(), delivered.end()).size(), kSamples);
}

TEST(Loader, LeavesOutEmptySlotsOfAShortStep) {
  const RunShape shape{kSamples, 100, 4};  // the second step has 3 samples
  const std::vector<Seen> seen = all_batches(options_for(shape, 1, 2, {0, 4}));
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].slot, 1U);
}

TEST(Loader, KeepsABatchUntouchedUntilTheNextIsAsked) {
  const RunShape shape{kSamples, 10, 1};
  auto loader = Loader::start(example(), options_for(shape, 0, 50, {0, 1}, 1));
  ASSERT_TRUE(loader.is_ok());
  for (Step step = 0; step < 50; ++step) {
    const Batch* batch = loader.value()->next().value();
    // The ring is full again: the thread has written everything it may while this one is held.
    const uint32_t wanted = step + 1 < 50 ? 1 : 0;
    while (loader.value()->ready_batches() < wanted) sched_yield();
    const Seen expected = planned(shape, step, 0);
    ASSERT_TRUE(std::equal(expected.images.begin(), expected.images.end(), batch->images));
    ASSERT_TRUE(std::equal(expected.labels.begin(), expected.labels.end(), batch->labels));
  }
}

TEST(Loader, GoesNoFurtherAheadThanAllowedAndThenSleeps) {
  const RunShape shape{kSamples, 10, 2};
  auto loader = Loader::start(example(), options_for(shape, 0, 1'000'000, {0, 2}, 6));
  ASSERT_TRUE(loader.is_ok());
  while (loader.value()->ready_batches() < 6) sched_yield();
  struct rusage before {};
  struct rusage after {};
  for (int i = 0; i < 1'000; ++i) sched_yield();
  EXPECT_EQ(loader.value()->ready_batches(), 6U);
  getrusage(RUSAGE_SELF, &before);
  const struct timespec nap = {0, 200'000'000};  // time in which a thread that spins would show
  nanosleep(&nap, nullptr);
  getrusage(RUSAGE_SELF, &after);
  const auto us = [](const struct rusage& r) {
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1'000'000L + r.ru_utime.tv_usec +
           r.ru_stime.tv_usec;
  };
  EXPECT_LT(us(after) - us(before), 50'000);
}

TEST(Loader, EndsAtOnceWhereverItIs) {
  const RunShape shape{kSamples, 10, 2};
  for (int taken = 0; taken < 20; ++taken) {
    auto loader = Loader::start(example(), options_for(shape, 0, 1'000'000, {0, 2}, 2));
    ASSERT_TRUE(loader.is_ok());
    for (int i = 0; i < taken; ++i) ASSERT_NE(loader.value()->next().value(), nullptr);
  }
}

TEST(Loader, WithoutSlotsOrStepsIsAtItsEnd) {
  const RunShape shape{kSamples, 10, 4};
  EXPECT_TRUE(all_batches(options_for(shape, 0, 20, {2, 2})).empty());
  EXPECT_TRUE(all_batches(options_for(shape, 20, 20, {0, 4})).empty());
}

TEST(Loader, UsesGivenStatisticsInsteadOfItsOwn) {
  LoaderOptions options = options_for({kSamples, 10, 1}, 0, 1, {0, 1});
  const float own = all_batches(options)[0].images[0];
  options.statistics = {{0.0, 1.0}};
  EXPECT_NE(all_batches(options)[0].images[0], own);
}

TEST(Loader, RefusesWhatCannotWork) {
  const RunShape shape{kSamples, 10, 1};
  LoaderOptions options = options_for(shape, 0, 1, {0, 1});
  options.transforms = {"flipp"};
  EXPECT_EQ(Loader::start(example(), options).status().code(), Code::kUsage);
  EXPECT_EQ(Loader::start(example(), options_for(shape, 0, 1, {0, 1}, 0)).status().code(),
            Code::kUsage);
  EXPECT_EQ(Loader::start(example(), options_for(shape, 0, 1, {0, 1}, 5'000)).status().code(),
            Code::kUsage);
}

TEST(Loader, SaysSoWhenItsBuffersCannotFitInMemory) {
  // One batch of 256 MiB samples times 4 bytes times 1024 buffers: beyond any machine of today.
  const SampleShape shape{1, 16'384, 1'024};
  const auto dataset =
      make_memory_dataset(shape, std::vector<uint8_t>(shape.elements() * 2), {0, 1});
  LoaderOptions options = options_for({2, 2, 1}, 0, 1, {0, 1}, 1'024);
  options.order.samples = 2;
  const auto loader = Loader::start(*dataset.value(), options);
  if (loader.is_ok()) GTEST_SKIP() << "this machine has more than 128 GiB of memory";
  EXPECT_EQ(loader.status().code(), Code::kConfig);
  EXPECT_THAT(loader.status().message(), testing::HasSubstr("data.prefetch_batches"));
}

// Sequence i is the tokens 4 i to 4 i + 3, and the next one.
TEST(Loader, DeliversSequencesByTheSamePlan) {
  const TemporaryDirectory dir;
  std::string bytes;
  for (uint32_t i = 0; i < 4 * 21 + 1; ++i) bytes += static_cast<char>(i);
  write_file(dir.path("x.txt"), bytes);
  const auto dataset = open_dataset(spec_of(dir.path("x.txt")), Split::kTrain, "", {}, {4, 0});
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  const RunShape shape{21, 8, 3};
  LoaderOptions options = options_for(shape, 0, 3, {0, 3});
  options.order = {kSeed, (*dataset)->fingerprint(), 21};
  options.transforms = {};
  const auto loader = Loader::start(**dataset, options);
  ASSERT_TRUE(loader.is_ok()) << loader.status().message();
  std::set<int64_t> delivered;
  while (const Batch* batch = loader.value()->next().value()) {
    const StepPlan plan = plan_step(shape, batch->step);
    const EpochOrder order(options.order, plan.epoch);
    const PositionRange range = slot_positions(plan, batch->slot, shape.slots);
    ASSERT_EQ(batch->samples, range.size());
    EXPECT_EQ(batch->images, nullptr);
    EXPECT_EQ(batch->digest, planned_digest(order, plan, batch->slot, shape.slots));
    for (uint64_t i = 0; i < range.size(); ++i) {
      const auto first = static_cast<int64_t>(4 * order.at(range.begin + i));
      delivered.insert(first);
      for (int64_t t = 0; t < 4; ++t) {
        EXPECT_EQ(batch->tokens[i * 4 + static_cast<uint64_t>(t)], first + t);
        EXPECT_EQ(batch->labels[i * 4 + static_cast<uint64_t>(t)], first + t + 1);
      }
    }
  }
  EXPECT_EQ(delivered.size(), 21U);
  options.transforms = {"normalize"};
  EXPECT_EQ(Loader::start(**dataset, options).status().code(), Code::kUsage);  // "normalize"
}

}  // namespace
}  // namespace lockstep::data
