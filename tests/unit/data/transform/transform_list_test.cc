#include "data/transform/transform_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::vector<std::string>& words) {
  const auto list = parse_transforms(words);
  EXPECT_EQ(list.status().code(), Code::kUsage);
  return list.status().message();
}

TEST(TransformList, KeepsTheOrderAndTakesUsualAmounts) {
  const auto list = parse_transforms({"pad_crop=4", "flip", "rotate=7.5", "cutout=8", "normalize"});
  ASSERT_TRUE(list.is_ok()) << list.status().message();
  EXPECT_TRUE(list->normalizes);
  EXPECT_THAT(
      list->augment,
      ElementsAre(AugmentStep{AugmentKind::kPadCrop, 4}, AugmentStep{AugmentKind::kFlip, 0.5},
                  AugmentStep{AugmentKind::kRotate, 7.5}, AugmentStep{AugmentKind::kCutout, 8}));
}

TEST(TransformList, OfNothingIsNothing) {
  const auto list = parse_transforms({});
  ASSERT_TRUE(list.is_ok());
  EXPECT_FALSE(list->normalizes);
  EXPECT_TRUE(list->augment.empty());
}

TEST(TransformList, NamesTheNearestWhereOneIsNotKnown) {
  EXPECT_THAT(error_of({"normalise"}), Suggests("normalize"));
  EXPECT_THAT(error_of({"flipp=0.1"}), Suggests("flip"));
  EXPECT_THAT(error_of({"mosaic"}), AllOf(Names("\"mosaic\""), Advises("normalize", "resize")));
}

TEST(TransformList, RefusesNumbersThatAreMissingOrWrong) {
  EXPECT_THAT(error_of({"pad_crop"}), HasSubstr("write pad_crop=NUMBER"));
  for (const char* wrong : {"pad_crop=", "pad_crop=0", "pad_crop=2.5", "pad_crop=4px",
                            "pad_crop=257", "pad_crop=-1", "pad_crop=nan"})
    EXPECT_THAT(error_of({wrong}), Advises("whole number", "1 to 256")) << wrong;
  EXPECT_THAT(error_of({"flip=1.01"}), Advises("0 to 1"));
  EXPECT_THAT(error_of({"rotate=181"}), Advises("0 to 180"));
  EXPECT_THAT(error_of({"hue=0.6"}), Advises("0 to 0.5"));
  EXPECT_THAT(error_of({"hue"}), HasSubstr("write hue=NUMBER"));
  EXPECT_THAT(error_of({"normalize=1"}), Says("no number"));
}

TEST(TransformList, TheFrameComesFirst) {
  const auto list = parse_transforms({"resize=256", "random_crop=224", "flip", "normalize"});
  ASSERT_TRUE(list.is_ok());
  EXPECT_EQ(list->frame, (ImageFrame{CropKind::kRandom, 224, 256}));
  EXPECT_EQ(list->augment.size(), 1U);
  EXPECT_EQ(parse_transforms({"random_resized_crop=32"})->frame,
            (ImageFrame{CropKind::kRandomResized, 32, 0}));
  EXPECT_THAT(error_of({"center_crop=8", "random_crop=8"}), Says("another crop"));
  EXPECT_THAT(error_of({"center_crop=8", "resize=9"}), Says("another crop"));
  EXPECT_THAT(error_of({"resize=9"}), Says("without a crop"));
  EXPECT_THAT(error_of({"resize=9", "center_crop=10"}), Says("10 pixels", "9"));
  for (const char* word : {"resize", "center_crop=0", "random_crop=x", "random_resized_crop=5000"})
    EXPECT_THAT(error_of({word}), Advises("pixels", "1 to 4096")) << word;
}

TEST(TransformList, AWindowMayStandBehindWhatGivesTheSameBytesBehindIt) {
  const auto list =
      parse_transforms({"resize=9", "flip=0.2", "hue=0.1", "random_crop=8", "rotate=5"});
  ASSERT_TRUE(list.is_ok()) << list.status().message();
  EXPECT_EQ(list->frame, (ImageFrame{CropKind::kRandom, 8, 9, 0.2}));
  EXPECT_THAT(list->augment,
              ElementsAre(AugmentStep{AugmentKind::kFlip, 0.2}, AugmentStep{AugmentKind::kHue, 0.1},
                          AugmentStep{AugmentKind::kRotate, 5}));
  const auto behind_it = parse_transforms({"random_crop=8", "flip", "flip_vertical"});
  EXPECT_EQ(behind_it->frame, (ImageFrame{CropKind::kRandom, 8, 0})) << "flips of the window";
  const auto last = parse_transforms({"flip_vertical=1", "normalize", "center_crop=8", "mixup"});
  ASSERT_TRUE(last.is_ok()) << last.status().message();
  EXPECT_EQ(last->frame, (ImageFrame{CropKind::kCenter, 8, 0, 0, 1}));
  EXPECT_TRUE(last->normalizes);
}

TEST(TransformList, SaysWhatACropCannotBeDoneBefore) {
  for (const char* word : {"pad_crop=4", "rotate=5", "contrast=0.1", "cutout=4"}) {
    const std::string name = std::string(word).substr(0, std::string(word).find('='));
    EXPECT_THAT(error_of({"flip", word, "center_crop=8"}),
                AllOf(Names("\"center_crop=8\"", name), Says("whole image")));
    EXPECT_THAT(error_of({word, "random_crop=8"}),
                AllOf(Names("\"random_crop=8\""), Advises("before " + name)));
  }
  for (const char* word : {"flip", "flip_vertical", "brightness=0.1", "saturation=1", "hue=0.1"}) {
    EXPECT_TRUE(parse_transforms({word, "random_crop=8"}).is_ok()) << word;
    for (const char* scaled : {"resize=9", "random_resized_crop=8"})
      EXPECT_THAT(error_of({word, scaled}), Says("rounds")) << word;
  }
  EXPECT_THAT(error_of({"normalize", "resize=9"}), HasSubstr("after normalize"));
  EXPECT_THAT(error_of({"normalize", "random_resized_crop=9"}), HasSubstr("after normalize"));
}

TEST(TransformList, WhatMixesImagesComesLast) {
  const auto list = parse_transforms({"flip", "normalize", "cutmix", "mixup=0.2"});
  ASSERT_TRUE(list.is_ok()) << list.status().message();
  EXPECT_EQ(list->mix, (MixRule{.mixup = 0.2, .cutmix = 1}));
  EXPECT_EQ(list->augment.size(), 1U);
  EXPECT_TRUE(list->normalizes);
  EXPECT_TRUE(parse_transforms({"normalize"})->mix.is_empty());
  for (const char* word : {"flip", "normalize", "random_crop=8"})
    EXPECT_THAT(error_of({"mixup", word}), AllOf(Names("mixup", "cutmix"), Advises("last")))
        << word;
  for (const char* word : {"mixup=0", "cutmix=-1", "mixup=1001", "cutmix=x", "mixup="})
    EXPECT_THAT(error_of({word}), Advises("0.001 to 1000")) << word;
  EXPECT_THAT(error_of({"mixup", "cutmix", "mixup=0.2"}), AllOf(Names("mixup"), Says("twice")));
}

TEST(TransformList, RefusesWhatIsThereTwiceOrBehindTheEnd) {
  EXPECT_THAT(error_of({"flip", "flip=0.1"}), AllOf(Names("flip"), Says("twice")));
  EXPECT_THAT(error_of({"normalize", "flip"}), HasSubstr("after normalize"));
}

}  // namespace
}  // namespace lockstep::data
