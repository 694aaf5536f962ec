#include "data/transform/image_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/unit/data/samples/hue_samples.h"

namespace lockstep::data {
namespace {

using testing::Each;
using testing::ElementsAre;
using Bytes = std::vector<uint8_t>;

constexpr int64_t kOne = 65'536;

// An image of one channel, 3 x 4: 1 to 12.
struct Small {
  Small() { std::iota(bytes.begin(), bytes.end(), uint8_t{1}); }
  ImageBytes image() { return {bytes.data(), 1, 3, 4}; }
  Bytes bytes = Bytes(12);
};

Bytes shifted(int64_t dy, int64_t dx) {
  Small in;
  Bytes out(12, 99);
  shift(in.image(), dy, dx, {out.data(), 1, 3, 4});
  return out;
}

Bytes rotated(int64_t cosine, int64_t sine, Bytes in, uint32_t height, uint32_t width) {
  Bytes out(in.size(), 99);
  rotate({in.data(), 1, height, width}, cosine, sine, {out.data(), 1, height, width});
  return out;
}

TEST(ImageOps, ChannelsLastBecomeFirst) {
  const Bytes stored{1, 10, 100, 2, 20, 200};
  Bytes out(6);
  copy_channels_first(stored.data(), {out.data(), 3, 1, 2});
  EXPECT_THAT(out, ElementsAre(1, 2, 10, 20, 100, 200));
}

TEST(ImageOps, MirrorsRowsAndColumns) {
  Small image;
  mirror(image.image());
  EXPECT_THAT(image.bytes, ElementsAre(4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9));
  mirror_vertically(image.image());
  EXPECT_THAT(image.bytes, ElementsAre(12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1));
}

TEST(ImageOps, AShiftFillsWithBlack) {
  EXPECT_EQ(shifted(0, 0), Small().bytes);
  EXPECT_THAT(shifted(1, 0), ElementsAre(5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 0));
  EXPECT_THAT(shifted(-1, 1), ElementsAre(0, 0, 0, 0, 2, 3, 4, 0, 6, 7, 8, 0));
  EXPECT_THAT(shifted(0, -3), ElementsAre(0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 9));
  for (const auto& [dy, dx] : {std::pair{3, 0}, {-3, 0}, {0, 4}, {0, -4}, {-9, 9}})
    EXPECT_THAT(shifted(dy, dx), Each(0));
}

TEST(ImageOps, AQuarterTurnIsCounterClockwise) {
  const Bytes square{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(rotated(kOne, 0, square, 3, 3), square);
  EXPECT_THAT(rotated(0, kOne, square, 3, 3), ElementsAre(3, 6, 9, 2, 5, 8, 1, 4, 7));
  EXPECT_THAT(rotated(-kOne, 0, square, 3, 3), ElementsAre(9, 8, 7, 6, 5, 4, 3, 2, 1));
  // A lying image loses its ends, and black comes in.
  EXPECT_THAT(rotated(0, kOne, Bytes{40, 80, 120, 160}, 1, 4), ElementsAre(0, 50, 50, 0));
  EXPECT_THAT(rotated(0, kOne, Bytes{1, 2, 3}, 1, 3), ElementsAre(0, 2, 0));
}

TEST(ImageOps, BetweenPixelsARotationMixesTheirNeighbours) {
  // The middle of 2 x 2 turned by 45 degrees: every corner comes from between two pixels and the
  // outside.
  const Bytes out = rotated(46'341, 46'341, {100, 100, 100, 100}, 2, 2);
  for (const uint8_t value : out) {
    EXPECT_GT(value, 50);
    EXPECT_LT(value, 100);
  }
}

TEST(ImageOps, BrightnessRoundsAndIsBounded) {
  Bytes bytes{0, 1, 3, 100, 200, 255};
  scale_brightness({bytes.data(), 1, 2, 3}, 1.5F);
  EXPECT_THAT(bytes, ElementsAre(0, 2, 5, 150, 255, 255));
  scale_brightness({bytes.data(), 1, 2, 3}, 0);
  EXPECT_THAT(bytes, Each(0));
}

TEST(ImageOps, ContrastStretchesAroundTheMeanGrey) {
  Bytes bytes{0, 100, 200, 100};
  scale_contrast({bytes.data(), 1, 2, 2}, 0.5F);
  EXPECT_THAT(bytes, ElementsAre(50, 100, 150, 100));
  scale_contrast({bytes.data(), 1, 2, 2}, 3);
  EXPECT_THAT(bytes, ElementsAre(0, 100, 250, 100));
}

TEST(ImageOps, WithoutSaturationAPixelIsItsGrey) {
  Bytes bytes{255, 0, 0, 0, 255, 0, 0, 0, 255};  // red, green, blue
  scale_saturation({bytes.data(), 3, 1, 3}, 0);
  EXPECT_THAT(bytes, ElementsAre(76, 150, 29, 76, 150, 29, 76, 150, 29));
}

TEST(ImageOps, AHueIsTurnedAsHsvSays) {
  for (const HueSample& sample : kHueSamples) {
    std::array<uint8_t, 3> colour = sample.colour;
    turn_hue({colour.data(), 3, 1, 1}, sample.turn);
    EXPECT_EQ(colour, sample.turned) << "turned by " << sample.turn;
  }
}

TEST(ImageOps, AfterAsManyTurnsAsMakeACircleEveryColourIsItself) {
  Bytes bytes(3 * 16 * 16 * 16);  // red, green and blue in steps of 17
  for (size_t i = 0; i < 16 * 16 * 16; ++i)
    for (size_t c = 0; c < 3; ++c)
      bytes[c * 16 * 16 * 16 + i] = static_cast<uint8_t>(17 * (i >> 4 * c & 15));
  const Bytes before = bytes;
  for (int i = 0; i < 3; ++i) turn_hue({bytes.data(), 3, 64, 64}, 2 * kOne);
  EXPECT_EQ(bytes, before);
  for (int i = 0; i < 2; ++i) turn_hue({bytes.data(), 3, 64, 64}, -3 * kOne);
  EXPECT_EQ(bytes, before);
}

TEST(ImageOps, AFactorOfOneChangesNothing) {
  Bytes bytes(3 * 256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  const Bytes before = bytes;
  const ImageBytes image{bytes.data(), 3, 16, 16};
  scale_brightness(image, 1);
  scale_contrast(image, 1);
  scale_saturation(image, 1);
  turn_hue(image, 0);
  EXPECT_EQ(bytes, before);
}

TEST(ImageOps, ASquareIsCutAtTheEdges) {
  const Bytes colour{77};
  Small image;
  fill_square(image.image(), 1, 2, 9, colour);
  EXPECT_THAT(image.bytes, ElementsAre(1, 2, 3, 4, 5, 6, 77, 77, 9, 10, 77, 77));
  Small other;
  fill_square(other.image(), -5, -5, 6, colour);
  EXPECT_THAT(other.bytes, ElementsAre(77, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  Small none;
  fill_square(none.image(), 3, 0, 2, colour);
  EXPECT_EQ(none.bytes, Small().bytes);
}

}  // namespace
}  // namespace lockstep::data
