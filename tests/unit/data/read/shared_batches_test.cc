// Batches that a caller keeps stay as they were, while their loader goes on and after it.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/dataset/memory_dataset.h"
#include "data/loader/batch_ring.h"
#include "data/loader/loader.h"

namespace lockstep::data {
namespace {

constexpr BatchRing::Sizes kSharedSizes{.samples = 4, .input_bytes = 100, .labels_bytes = 8};
constexpr uint64_t kSharedBytes = kSharedSizes.samples * kSharedSizes.input_bytes;

void make_shared_one(BatchRing& ring, Step step) {
  BatchRing::Place* place = ring.wait_for_place();
  ASSERT_NE(place, nullptr);
  place->batch.step = step;
  place->batch.stored = reinterpret_cast<const uint8_t*>(place->inputs);
  std::memset(place->inputs, static_cast<int>(step), kSharedBytes);
  ring.made();
}

std::shared_ptr<const Batch> take_shared(BatchRing& ring) {
  EXPECT_NE(ring.take().value(), nullptr);
  return ring.share();
}

void expect_kept(const Batch& batch, Step step) {
  EXPECT_EQ(batch.step, step);
  for (uint64_t i = 0; i < kSharedBytes; ++i)
    ASSERT_EQ(batch.stored[i], static_cast<uint8_t>(step)) << "of step " << step;
}

TEST(SharedBatches, EachStaysWhileTheRingGoesRoundAndAfterItsEnd) {
  std::vector<std::shared_ptr<const Batch>> kept;
  {
    const auto ring = std::move(BatchRing::make(kSharedSizes, 2)).value();
    for (Step step = 0; step < 20; ++step) {
      make_shared_one(*ring, step);
      kept.push_back(take_shared(*ring));
    }
  }
  for (Step step = 0; step < 20; ++step) expect_kept(*kept[step], step);
}

TEST(SharedBatches, APlaceThatWasGivenBackIsUsedAgainAndOneThatIsHeldIsNot) {
  const auto ring = std::move(BatchRing::make(kSharedSizes, 1)).value();
  make_shared_one(*ring, 1);
  auto first = take_shared(*ring);
  const uint8_t* const memory = first->stored;
  make_shared_one(*ring, 2);
  std::thread([&] { first.reset(); }).join();  // on any thread
  const auto second = take_shared(*ring);
  make_shared_one(*ring, 3);
  const auto third = take_shared(*ring);
  EXPECT_EQ(third->stored, memory);
  make_shared_one(*ring, 4);
  const auto fourth = take_shared(*ring);  // in fresh memory: the second is held
  EXPECT_NE(fourth->stored, second->stored);
  EXPECT_NE(fourth->stored, memory);
  expect_kept(*second, 2);
  expect_kept(*third, 3);
  expect_kept(*fourth, 4);
}

TEST(SharedBatches, ALoopThatLetsEachGoForTheNextNeedsNoFreshMemory) {
  const auto ring = std::move(BatchRing::make(kSharedSizes, 2)).value();
  std::shared_ptr<const Batch> held;
  std::set<const uint8_t*> places;
  for (Step step = 0; step < 20; ++step) {
    make_shared_one(*ring, step);
    auto next = take_shared(*ring);
    places.insert(next->stored);
    held = std::move(next);
  }
  EXPECT_LE(places.size(), 3u);
}

TEST(SharedBatches, TheyTakeTurnsWithBatchesThatAreNotShared) {
  const auto ring = std::move(BatchRing::make(kSharedSizes, 1)).value();
  std::vector<std::shared_ptr<const Batch>> kept;
  for (Step step = 0; step < 12; ++step) {
    make_shared_one(*ring, step);
    if (step % 3 == 0) {
      kept.push_back(take_shared(*ring));
    } else {
      EXPECT_EQ((*ring->take())->batch.step, step);
    }
  }
  for (size_t i = 0; i < kept.size(); ++i) expect_kept(*kept[i], 3 * i);
}

TEST(SharedBatches, WhatALoaderGaveOutlivesIt) {
  const SampleShape shape{1, 3, 5};
  std::vector<uint8_t> pixels;
  std::vector<uint32_t> classes;
  for (uint32_t i = 0; i < 103; ++i) {
    for (uint32_t k = 0; k < shape.elements(); ++k) pixels.push_back(static_cast<uint8_t>(i + k));
    classes.push_back(i % 7);
  }
  const auto dataset = std::move(make_memory_dataset(shape, pixels, classes)).value();
  LoaderOptions options;
  options.shape = {.samples = dataset->samples(), .global_batch = 4, .slots = 2};
  options.order = {3, dataset->fingerprint(), dataset->samples()};
  options.end_step = 6;
  options.slots = {0, 2};
  options.prefetch_batches = 2;
  options.transforms = {};
  std::vector<std::shared_ptr<const Batch>> kept;
  {
    const auto loader = Loader::start(*dataset, options);
    ASSERT_TRUE(loader.is_ok()) << loader.status().message();
    while (true) {
      auto batch = (*loader)->take();
      ASSERT_TRUE(batch.is_ok()) << batch.status().message();
      if (*batch == nullptr) break;
      kept.push_back(std::move(*batch));
    }
  }
  const auto again = Loader::start(*dataset, options);
  ASSERT_TRUE(again.is_ok());
  EXPECT_EQ(kept.size(), 12u);
  for (const auto& batch : kept) {
    const auto expected = (*again)->next();
    ASSERT_TRUE(expected.is_ok());
    const Batch& b = **expected;
    EXPECT_EQ(batch->step, b.step);
    EXPECT_EQ(batch->digest, b.digest);
    EXPECT_EQ(std::memcmp(batch->images, b.images, b.samples * b.shape.elements() * 4), 0);
    EXPECT_EQ(std::memcmp(batch->labels, b.labels, b.samples * sizeof(int64_t)), 0);
  }
}

}  // namespace
}  // namespace lockstep::data
