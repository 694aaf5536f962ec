#include "data/image/frame.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::data {
namespace {

constexpr ImageFrame kResized{CropKind::kRandomResized, 224, 0};

TEST(Frame, TheMiddleOfAnImage) {
  const FrameCut wide = cut_of({CropKind::kCenter, 224, 256}, 500, 375, std::nullopt);
  EXPECT_EQ(wide, (FrameCut{{0, 0, 500, 375}, 341, 256, {58, 16, 224, 224}}));
  const FrameCut high = cut_of({CropKind::kCenter, 224, 256}, 375, 500, std::nullopt);
  EXPECT_EQ(high, (FrameCut{{0, 0, 375, 500}, 256, 341, {16, 58, 224, 224}}));
}

TEST(Frame, WithoutAResizeAnImageIsEnlargedOnlyWhereItIsTooSmall) {
  const FrameCut large = cut_of({CropKind::kCenter, 100, 0}, 300, 200, std::nullopt);
  EXPECT_EQ(large, (FrameCut{{0, 0, 300, 200}, 300, 200, {100, 50, 100, 100}}));
  const FrameCut small = cut_of({CropKind::kCenter, 100, 0}, 50, 25, std::nullopt);
  EXPECT_EQ(small, (FrameCut{{0, 0, 50, 25}, 200, 100, {50, 0, 100, 100}}));
}

TEST(Frame, EvaluationSeesTheMiddleOfWhatIsRandomInTraining) {
  EXPECT_EQ(cut_of(kResized, 500, 375, std::nullopt),
            cut_of({CropKind::kCenter, 224, 256}, 500, 375, std::nullopt));
  EXPECT_EQ(cut_of({CropKind::kRandomResized, 224, 300}, 500, 375, std::nullopt),
            cut_of({CropKind::kCenter, 224, 300}, 500, 375, std::nullopt));
  EXPECT_EQ(cut_of({CropKind::kRandom, 32, 40}, 50, 60, std::nullopt),
            cut_of({CropKind::kCenter, 32, 40}, 50, 60, std::nullopt));
}

TEST(Frame, OfAFlippedImageTheWindowIsAtTheMirroredPlace) {
  const ImageFrame flipped{CropKind::kRandom, 30, 0, 1};
  const ImageFrame upside_down{CropKind::kRandom, 30, 0, 0, 1};
  for (uint64_t stream = 0; stream < 20; ++stream) {
    const PixelBox plain = cut_of({CropKind::kRandom, 30, 0}, 41, 36, stream).window;
    EXPECT_EQ(cut_of(flipped, 41, 36, stream).window, (PixelBox{11 - plain.x, plain.y, 30, 30}));
    EXPECT_EQ(cut_of(upside_down, 41, 36, stream).window, (PixelBox{plain.x, 6 - plain.y, 30, 30}));
  }
  // Evaluation sees images as they are.
  EXPECT_EQ(cut_of(flipped, 41, 36, std::nullopt).window, (PixelBox{6, 3, 30, 30}));
}

TEST(Frame, OneStreamIsOneCut) {
  EXPECT_EQ(cut_of(kResized, 500, 375, 9), cut_of(kResized, 500, 375, 9));
  EXPECT_NE(cut_of(kResized, 500, 375, 9), cut_of(kResized, 500, 375, 10));
}

TEST(Frame, RandomPlacesReachEveryCorner) {
  const ImageFrame frame{CropKind::kRandom, 30, 32};
  bool seen[3][3] = {};
  for (uint64_t stream = 0; stream < 300; ++stream) {
    const FrameCut cut = cut_of(frame, 32, 32, stream);
    ASSERT_LE(cut.window.x, 2U);
    ASSERT_LE(cut.window.y, 2U);
    seen[cut.window.y][cut.window.x] = true;
  }
  for (const auto& row : seen)
    for (const bool place : row) EXPECT_TRUE(place);
}

// Mean and bounds of area and ratio over many draws: uniform in [0.08, 1] where all boxes fit.
TEST(Frame, RandomBoxesHaveTheAreasAndRatiosThatTheyShould) {
  constexpr int kDraws = 20'000;
  double areas = 0;
  double log_ratios = 0;
  for (uint64_t stream = 0; stream < kDraws; ++stream) {
    const FrameCut cut = cut_of(kResized, 1'000, 1'000, stream);
    ASSERT_LE(cut.box.x + cut.box.width, 1'000U);
    ASSERT_LE(cut.box.y + cut.box.height, 1'000U);
    EXPECT_EQ(cut.window, (PixelBox{0, 0, 224, 224}));
    const double area = 1e-6 * cut.box.width * cut.box.height;
    const double ratio = 1.0 * cut.box.width / cut.box.height;
    ASSERT_GT(area, 0.078);
    ASSERT_GT(ratio, 0.745);
    ASSERT_LT(ratio, 1.342);
    areas += area / kDraws;
    log_ratios += std::log(ratio) / kDraws;
  }
  // Boxes beyond the image are drawn again, which makes the mean smaller than 0.54: 0.4784 in
  // 200,000 draws of Python's generator.
  EXPECT_NEAR(areas, 0.4784, 0.006);
  EXPECT_NEAR(log_ratios, 0, 0.005);
}

TEST(Frame, AStripIsCutInItsMiddle) {
  EXPECT_EQ(cut_of(kResized, 1'000, 10, 1).box.height, 10U);
  EXPECT_LE(cut_of(kResized, 10, 1'000, 1).box.height, 14U);
  EXPECT_EQ(cut_of(kResized, 1, 1, 5).box, (PixelBox{0, 0, 1, 1}));
}

}  // namespace
}  // namespace lockstep::data
