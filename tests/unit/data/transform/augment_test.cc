#include "data/transform/augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/dataset/memory_dataset.h"
#include "data/loader/loader.h"
#include "data/loader/sample_reader.h"
#include "tests/support/fails_with.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

const SampleShape kGrey{1, 8, 8};
const SampleShape kColour{3, 8, 8};
const std::vector<ChannelStatistics> kOneMean{{0.2, 1}};
const std::vector<ChannelStatistics> kMeans{{0.2, 1}, {0.4, 1}, {0.6, 1}};
const std::vector<std::string> kAll{"pad_crop=3",     "flip",           "flip_vertical=0.3",
                                    "rotate=20",      "brightness=0.4", "contrast=0.4",
                                    "saturation=0.4", "hue=0.2",        "cutout=3"};

Augmenter augmenter(const std::vector<std::string>& words, const SampleShape& shape = kGrey) {
  auto list = parse_transforms(words);
  EXPECT_TRUE(list.is_ok()) << list.status().message();
  auto made = Augmenter::create(list->augment, shape, shape.channels == 1 ? kOneMean : kMeans);
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  return std::move(made).value();
}

Bytes counting(const SampleShape& shape) {
  Bytes image(shape.elements());
  std::iota(image.begin(), image.end(), uint8_t{1});
  return image;
}

Bytes made(Augmenter& augmenter, const Bytes& image, uint64_t stream) {
  const uint8_t* bytes = augmenter.make(image.data(), stream);
  return {bytes, bytes + image.size()};
}

TEST(Augmenter, DependsOnTheStreamAndNotOnWhatWasMadeBefore) {
  Augmenter one = augmenter(kAll, kColour);
  Augmenter other = augmenter(kAll, kColour);
  const Bytes image = counting(kColour);
  std::set<Bytes> seen;
  for (uint64_t i = 0; i < 50; ++i) seen.insert(made(one, image, i));
  EXPECT_GT(seen.size(), 45U);
  for (uint64_t i = 50; i-- > 0;) EXPECT_EQ(made(other, image, i), made(one, image, i));
}

TEST(Augmenter, OneStepsChoicesDoNotDependOnTheOthers) {
  Augmenter alone = augmenter({"flip"});
  Augmenter with_more = augmenter({"brightness=0", "flip"});
  const Bytes image = counting(kGrey);
  for (uint64_t i = 0; i < 30; ++i) EXPECT_EQ(made(alone, image, i), made(with_more, image, i));
}

TEST(Augmenter, ChannelsLastAreTheSameImage) {
  SampleShape last = kColour;
  last.channels_last = true;
  const Bytes image = counting(kColour);
  Bytes stored(image.size());
  for (size_t c = 0; c < 3; ++c)
    for (size_t i = 0; i < 64; ++i) stored[3 * i + c] = image[64 * c + i];
  Augmenter first = augmenter(kAll, kColour);
  Augmenter same = augmenter(kAll, last);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(made(same, stored, i), made(first, image, i));
}

TEST(Augmenter, FlipsAsOftenAsItSays) {
  Augmenter often = augmenter({"flip=0.8"});
  const Bytes image = counting(kGrey);
  int flipped = 0;
  for (uint64_t i = 0; i < 1'000; ++i) flipped += made(often, image, i) != image;
  EXPECT_NEAR(flipped, 800, 60);  // five standard deviations
}

TEST(Augmenter, EveryPlaceOfAWindowIsAsLikely) {
  Augmenter crops = augmenter({"pad_crop=2"});
  const Bytes image = counting(kGrey);
  std::map<Bytes, int> places;
  for (uint64_t i = 0; i < 2'500; ++i) ++places[made(crops, image, i)];
  EXPECT_EQ(places.size(), 25U);
  for (const auto& [place, times] : places) EXPECT_NEAR(times, 100, 50);
}

// The bytes of before there was a hue: a run without one goes on with the same images.
TEST(Augmenter, WithoutAHueTheBytesAreThoseOfOldRuns) {
  std::vector<std::string> old = kAll;
  std::erase(old, "hue=0.2");
  Augmenter without = augmenter(old, kColour);
  uint64_t digest = 0;
  for (uint64_t i = 0; i < 20; ++i)
    for (const uint8_t byte : made(without, counting(kColour), i)) digest = 31 * digest + byte;
  EXPECT_EQ(digest, 397'124'797'968'433'291U);
}

// From red: green where it is turned by a third of the circle, magenta by a sixth the other way.
TEST(Augmenter, HuesAreTurnedBothWaysAndNoFurtherThanTheyMay) {
  Augmenter turns = augmenter({"hue=0.1"}, kColour);
  Bytes red(kColour.elements());
  std::fill_n(red.begin(), 64, uint8_t{240});
  int green_most = 0;
  int blue_most = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const Bytes out = made(turns, red, i);
    EXPECT_EQ(out[0], 240);
    EXPECT_TRUE(out[64] == 0 || out[128] == 0);
    green_most = std::max<int>(green_most, out[64]);
    blue_most = std::max<int>(blue_most, out[128]);
  }
  EXPECT_NEAR(green_most, 144, 3) << "0.1 of the circle are 0.6 of a sixth, of 240";
  EXPECT_NEAR(blue_most, 144, 3);
}

TEST(Augmenter, CutoutTakesTheDataSetsMeanAndAnyPlaceOfTheImage) {
  Augmenter cuts = augmenter({"cutout=3"}, kColour);
  const Bytes image(kColour.elements(), 7);
  std::set<size_t> least;
  for (uint64_t i = 0; i < 500; ++i) {
    const Bytes out = made(cuts, image, i);
    size_t cut = 0;
    for (size_t k = 0; k < 64; ++k) {
      if (out[k] == 7) continue;
      ++cut;
      EXPECT_EQ(out[k], 51);
      EXPECT_EQ(out[64 + k], 102);
      EXPECT_EQ(out[128 + k], 153);
    }
    least.insert(cut);
  }
  EXPECT_EQ(least, (std::set<size_t>{4, 6, 9})) << "whole, at an edge, in a corner";
}

TEST(Augmenter, SaysWhatDoesNotFitTheImages) {
  const auto error = [](AugmentStep step, const SampleShape& shape) {
    return Augmenter::create({step}, shape, kOneMean).status().message();
  };
  EXPECT_THAT(error({AugmentKind::kSaturation, 0.1}, kGrey),
              AllOf(Names("saturation"), Says("three channels")));
  EXPECT_THAT(error({AugmentKind::kHue, 0.1}, kGrey),
              AllOf(Names("hue"), Says("three channels", "have 1")));
  EXPECT_THAT(error({AugmentKind::kPadCrop, 9}, kGrey), Says("larger"));
  EXPECT_THAT(error({AugmentKind::kFlip, 0.5}, {.tokens = 4, .token_bytes = 2}),
              HasSubstr("for images"));
}

// Makes 40 images of one channel, each a different constant.
std::unique_ptr<Dataset> constants() {
  Bytes pixels;
  for (size_t i = 0; i < 40; ++i) pixels.insert(pixels.end(), 64, static_cast<uint8_t>(100 + i));
  return std::move(make_memory_dataset(kGrey, pixels, std::vector<uint32_t>(40, 0))).value();
}

// Returns the images of a step by the sample that they show, made by a loader for each slot.
std::map<uint8_t, Bytes> images_of(const Dataset& dataset, Step step, uint32_t slots) {
  std::map<uint8_t, Bytes> images;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    LoaderOptions options;
    options.shape = {40, 20, slots};
    options.order = {5, dataset.fingerprint(), 40};
    options.first_step = step;
    options.end_step = step + 1;
    options.slots = {slot, slot + 1};
    options.transforms = {"pad_crop=3"};
    options.form = ImageForm::kStored;
    const auto loader = Loader::start(dataset, options);
    const Batch* batch = loader.value()->next().value();
    for (uint32_t i = 0; i < batch->samples; ++i) {
      const Bytes image(batch->stored + 64 * i, batch->stored + 64 * (i + 1));
      images[*std::max_element(image.begin(), image.end())] = image;
    }
  }
  return images;
}

TEST(Augmented, ASamplesImageDependsOnItsPlaceInTheEpochAndOnNothingElse) {
  const auto dataset = constants();
  const auto first = images_of(*dataset, 0, 1);
  EXPECT_EQ(first.size(), 20U);
  EXPECT_EQ(images_of(*dataset, 0, 4), first);
  EXPECT_EQ(images_of(*dataset, 0, 20), first);
  std::set<size_t> borders;  // zeros of an image
  for (const auto& [sample, image] : first)
    borders.insert(static_cast<size_t>(std::count(image.begin(), image.end(), 0)));
  EXPECT_GT(borders.size(), 4U);
}

TEST(Augmented, TheNextEpochSeesOtherImages) {
  const auto dataset = constants();
  std::map<uint8_t, Bytes> first = images_of(*dataset, 0, 1);
  first.merge(images_of(*dataset, 1, 1));
  std::map<uint8_t, Bytes> second = images_of(*dataset, 2, 1);
  second.merge(images_of(*dataset, 3, 1));
  ASSERT_EQ(first.size(), 40U);
  ASSERT_EQ(second.size(), 40U);
  int same = 0;
  for (const auto& [sample, image] : first) same += second.at(sample) == image;
  EXPECT_LT(same, 8) << "of 40, each with 1 of 49 places";
}

TEST(Augmented, EvaluationSeesThemAsTheyAre) {
  const auto dataset = constants();
  const auto reader =
      SampleReader::create(*dataset, {"pad_crop=3"}, dataset->statistics(), ImageForm::kStored);
  ASSERT_TRUE(reader.is_ok());
  Bytes image(64);
  int64_t label = 0;
  ASSERT_TRUE(
      reader->read_range(9, 10, reinterpret_cast<std::byte*>(image.data()), &label).is_ok());
  EXPECT_EQ(image, Bytes(64, 109));
}

}  // namespace
}  // namespace lockstep::data
