#include "data/transform/batch_mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/dataset/memory_dataset.h"
#include "data/loader/loader.h"
#include "data/transform/augment.h"

namespace lockstep::data {
namespace {

const SampleShape kMixShape{2, 6, 8};
constexpr uint64_t kElements = 96;
constexpr MixRule kMixup{.mixup = 0.4, .cutmix = 0};
constexpr MixRule kCutmix{.mixup = 0, .cutmix = 1};
constexpr MixRule kBoth{.mixup = 0.4, .cutmix = 1};

template <typename T>
std::vector<T> counting(uint32_t samples) {
  std::vector<T> images(samples * kElements);
  std::iota(images.begin(), images.end(), T{1});
  return images;
}

template <typename T>
MixShares mix(const MixRule& rule, uint64_t stream, uint32_t samples, std::vector<T>& images) {
  return BatchMixer(rule, kMixShape, kElements * sizeof(T))
      .mix(stream, samples, reinterpret_cast<std::byte*>(images.data()));
}

// As the definition has it, from the batch as it was.
std::vector<float> mixed_by_definition(const BatchMix& mix, const std::vector<float>& images) {
  const size_t samples = images.size() / kElements;
  std::vector<float> out;
  for (size_t i = 0; i < images.size(); ++i) {
    const size_t sample = i / kElements, pixel = i % kElements % 48;
    const size_t y = pixel / 8, x = pixel % 8;
    const float other = images[(sample + samples - 1) % samples * kElements + i % kElements];
    const bool is_cut = y >= mix.top && y < mix.bottom && x >= mix.left && x < mix.right;
    const float share = is_cut ? 0 : mix.shares.pixels;
    out.push_back(share * images[i] + (1 - share) * other);
  }
  return out;
}

TEST(BatchMixer, MixesEverySampleWithTheOneBeforeIt) {
  uint32_t cuts = 0;
  for (uint64_t stream = 0; stream < 60; ++stream) {
    for (const uint32_t samples : {2u, 3u, 7u}) {
      std::vector<float> images = counting<float>(samples);
      const BatchMix drawn = draw_mix(kBoth, stream, kMixShape.height, kMixShape.width);
      const std::vector<float> expected = mixed_by_definition(drawn, images);
      EXPECT_EQ(mix(kBoth, stream, samples, images), drawn.shares);
      ASSERT_EQ(images, expected) << stream;
      cuts += drawn.cuts();
    }
  }
  EXPECT_GT(cuts, 40u);
  EXPECT_LT(cuts, 140u);
}

TEST(BatchMixer, OfBytesOnlyCutsAndLeavesTheSharesOfPixelsToOthers) {
  for (uint64_t stream = 0; stream < 40; ++stream) {
    std::vector<uint8_t> bytes = counting<uint8_t>(2);
    std::vector<float> floats(bytes.begin(), bytes.end());
    const MixShares shares = mix(kBoth, stream, 2, bytes);
    EXPECT_EQ(mix(kBoth, stream, 2, floats), shares);
    if (shares.pixels == 1)
      EXPECT_EQ(std::vector<float>(bytes.begin(), bytes.end()), floats);
    else
      EXPECT_EQ(bytes, counting<uint8_t>(2));
  }
}

TEST(BatchMixer, LeavesASampleThatIsAloneAsItIs) {
  std::vector<float> images = counting<float>(1);
  EXPECT_EQ(mix(kBoth, 3, 1, images), MixShares{});
  EXPECT_EQ(images, counting<float>(1));
  EXPECT_EQ(mix(MixRule{}, 3, 2, images), MixShares{}) << "and all of them without a rule";
}

TEST(DrawMix, TheLabelsShareIsWhatIsLeftOfThePixels) {
  double total = 0;
  constexpr int kDraws = 2'000;
  for (uint64_t stream = 0; stream < kDraws; ++stream) {
    const BatchMix drawn = draw_mix(kCutmix, stream, 6, 8);
    EXPECT_LE(drawn.bottom, 6u);
    EXPECT_LE(drawn.right, 8u);
    const double cut = (drawn.bottom - drawn.top) * (drawn.right - drawn.left);
    EXPECT_NEAR(drawn.shares.label, 1 - cut / 48, 1e-7);
    EXPECT_EQ(drawn.shares.pixels, 1);
    total += cut;
    const MixShares mixup = draw_mix(kMixup, stream, 6, 8).shares;
    EXPECT_EQ(mixup.label, mixup.pixels);
    EXPECT_EQ(std::fmod(mixup.label, 0x1p-24f), 0.0f);
  }
  EXPECT_GT(total / kDraws, 5) << "of 48, what lies in the image of half of it";
  EXPECT_LT(total / kDraws, 24);
}

TEST(DrawMix, OfBothEachIsAsOften) {
  int cuts = 0;
  for (uint64_t stream = 0; stream < 2'000; ++stream)
    cuts += draw_mix(kBoth, stream, 32, 32) == draw_mix(kCutmix, stream, 32, 32);
  EXPECT_NEAR(cuts, 1'000, 112);  // five standard deviations
}

// Constant images, 40 of them, whose labels are their numbers.
std::unique_ptr<Dataset> numbered() {
  std::vector<uint8_t> pixels;
  std::vector<uint32_t> labels(40);
  std::iota(labels.begin(), labels.end(), 0u);
  for (const uint32_t i : labels) pixels.insert(pixels.end(), 64, static_cast<uint8_t>(4 * i));
  return std::move(make_memory_dataset({1, 8, 8}, pixels, labels)).value();
}

LoaderOptions options_of(const std::vector<std::string>& transforms, SlotRun slots) {
  LoaderOptions options;
  options.shape = {40, 17, 3};  // slots of 5 and 6; in the last step of 2
  options.order = {5, "mixed", 40};
  options.end_step = 6;
  options.slots = slots;
  options.transforms = transforms;
  return options;
}

TEST(MixedBatches, AreAlikeForEveryRunOfSlotsAndFollowThePositions) {
  const auto dataset = numbered();
  const std::vector<std::string> transforms{"mixup=0.4", "cutmix"};
  auto all = std::move(Loader::start(*dataset, options_of(transforms, {0, 3}))).value();
  std::vector<std::unique_ptr<Loader>> alone;
  for (uint32_t slot = 0; slot < 3; ++slot)
    alone.push_back(
        std::move(Loader::start(*dataset, options_of(transforms, {slot, slot + 1}))).value());
  auto plain = std::move(Loader::start(*dataset, options_of({}, {0, 3}))).value();
  uint32_t mixed = 0;
  while (const Batch* batch = all->next().value()) {
    const Batch* other = alone[batch->slot]->next().value();
    const Batch* unmixed = plain->next().value();
    const size_t values = batch->samples * 64;
    const std::vector<float> images(batch->images, batch->images + values);
    EXPECT_EQ(images, std::vector<float>(other->images, other->images + values));
    EXPECT_EQ(batch->shares, other->shares);
    EXPECT_EQ(batch->digest, unmixed->digest);
    EXPECT_TRUE(std::equal(batch->labels, batch->labels + batch->samples, unmixed->labels));
    const StepPlan plan = plan_step({40, 17, 3}, batch->step);
    const uint64_t first = slot_positions(plan, batch->slot, 3).begin;
    EXPECT_EQ(batch->shares,
              draw_mix({0.4, 1}, Augmenter::stream_of(5, plan.epoch, first), 8, 8).shares);
    mixed += batch->shares.label < 1;
  }
  EXPECT_GT(mixed, 12u) << "of 18";
}

}  // namespace
}  // namespace lockstep::data
