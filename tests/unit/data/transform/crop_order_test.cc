// Lockstep applies a crop before the words that precede it (transform_list.h). The bytes must be
// the same as if it applied the words one after another.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "data/dataset/channel_statistics.h"
#include "data/image/decode.h"
#include "data/image/image_decoder.h"
#include "data/image/resample.h"
#include "data/transform/augment.h"
#include "tests/unit/data/support/image_writer.h"

namespace lockstep::data {
namespace {

using Bytes = std::vector<uint8_t>;
using Words = std::vector<std::string>;

constexpr uint64_t kStreams = 40;
const std::vector<ChannelStatistics> kCropMeans{{0.2, 1}, {0.4, 1}, {0.6, 1}};

struct Picture {
  std::string encoded;
  uint32_t shrink = 1;  // with which a crop of it is decoded
};

// (3, height, width)
struct CropPixels {
  Bytes bytes;
  uint32_t width = 0;
  uint32_t height = 0;
};

// Holds the words in their order: the crop follows `before`.
struct Order {
  Words scaled;
  Words before;
  std::string crop;
  Words behind;

  Words words() const {
    Words all = scaled;
    all.insert(all.end(), before.begin(), before.end());
    all.push_back(crop);
    all.insert(all.end(), behind.begin(), behind.end());
    return all;
  }
};

TransformList list_of(const Words& words) {
  auto list = parse_transforms(words);
  EXPECT_TRUE(list.is_ok()) << list.status().message();
  return std::move(list).value();
}

CropPixels augmented(const Words& words, const CropPixels& image, uint64_t stream) {
  auto augmenter =
      Augmenter::create(list_of(words).augment, {3, image.height, image.width}, kCropMeans);
  if (augmenter->is_empty()) return image;
  const uint8_t* made = augmenter->make(image.bytes.data(), stream);
  return {{made, made + image.bytes.size()}, image.width, image.height};
}

// All of the image, scaled as the frame says.
CropPixels whole(const Picture& picture, const FrameCut& cut) {
  const auto encoded = span_of(picture.encoded);
  const ImageInfo info = read_image_info(encoded).value();
  DecodedPart part;
  EXPECT_TRUE(
      decode(encoded, {info, {0, 0, info.width, info.height}, picture.shrink, 3}, part).is_ok());
  const auto axis = [&](uint32_t length, uint32_t scaled) {
    return AxisSpec{0, 1.0 * length / picture.shrink, scaled, 0, scaled};
  };
  CropPixels out{Bytes(size_t{3} * cut.width * cut.height), cut.width, cut.height};
  ResampleScratch scratch;
  resample(part, axis(info.width, cut.width), axis(info.height, cut.height), scratch,
           out.bytes.data());
  return out;
}

CropPixels window_of(const CropPixels& image, const PixelBox& window) {
  CropPixels out{{}, window.width, window.height};
  for (uint32_t c = 0; c < 3; ++c) {
    for (uint32_t y = window.y; y < window.y + window.height; ++y) {
      const auto row = image.bytes.begin() + (c * image.height + y) * image.width + window.x;
      out.bytes.insert(out.bytes.end(), row, row + window.width);
    }
  }
  return out;
}

Bytes one_after_another(const Picture& picture, const Order& order, uint64_t stream) {
  Words frame_words = order.scaled;
  frame_words.push_back(order.crop);
  const ImageInfo info = read_image_info(span_of(picture.encoded)).value();
  const FrameCut cut = cut_of(list_of(frame_words).frame, info.width, info.height, stream);
  const CropPixels before = augmented(order.before, whole(picture, cut), stream);
  return augmented(order.behind, window_of(before, cut.window), stream).bytes;
}

// As the reader does it.
Bytes crop_first(const Picture& picture, const Order& order, uint64_t stream) {
  const ImageFrame frame = list_of(order.words()).frame;
  CropPixels cut{Bytes(size_t{3} * frame.size * frame.size), frame.size, frame.size};
  ImageDecoder decoder;
  EXPECT_TRUE(decoder
                  .decode(span_of(picture.encoded), {frame, frame.size, frame.size, 3}, stream,
                          cut.bytes.data())
                  .is_ok());
  auto augmenter =
      Augmenter::create(list_of(order.words()).augment, {3, frame.size, frame.size}, kCropMeans);
  const uint8_t* made = augmenter->make(cut.bytes.data(), stream);
  return {made, made + cut.bytes.size()};
}

void expect_same(const Picture& picture, const Order& order) {
  std::set<Bytes> seen;
  for (uint64_t stream = 0; stream < kStreams; ++stream) {
    const Bytes made = crop_first(picture, order, stream);
    ASSERT_EQ(made, one_after_another(picture, order, stream))
        << "stream " << stream << ", " << testing::PrintToString(order.words());
    seen.insert(made);
  }
  EXPECT_GT(seen.size(), 2U) << "or nothing is drawn";
}

const std::vector<Order> kOrders{
    {{}, {"flip", "flip_vertical"}, "center_crop=20", {}},  // what is left over is odd and even
    {{}, {"flip", "flip_vertical=0.3"}, "random_crop=20", {}},
    {{}, {"brightness=0.4", "saturation=0.4", "hue=0.3"}, "random_crop=20", {"flip"}},
    {{},
     {"hue=0.1", "flip", "brightness=0.5", "flip_vertical", "saturation=0.9"},
     "random_crop=20",
     {"contrast=0.4", "rotate=20", "cutout=5"}},
    {{"resize=24"}, {"flip", "brightness=0.4", "hue=0.5"}, "random_crop=20", {"saturation=0.3"}},
    {{"resize=25"}, {"flip_vertical", "saturation=0.4"}, "center_crop=20", {}},
};

TEST(CropOrder, OfAPngFileTheBytesAreThoseOfTheWordsInTheirOrder) {
  const Picture file{png_of(picture(41, 30), 41, 30)};
  for (const Order& order : kOrders) expect_same(file, order);
}

TEST(CropOrder, OfAJpegFileThatIsDecodedInPartToo) {
  const Picture file{jpeg_picture(41, 30)};
  for (const Order& order : kOrders) expect_same(file, order);
}

TEST(CropOrder, OfAJpegFileThatIsShrunkWhileItIsDecodedToo) {
  const Picture file{jpeg_picture(131, 112), 4};
  for (const Order& order : kOrders)
    if (!order.scaled.empty()) expect_same(file, order);
}

TEST(CropOrder, AnImageThatIsTooSmallIsEnlargedInFrontOfEverything) {
  const Picture file{png_of(picture(17, 12), 17, 12)};
  for (const Order& order : kOrders)
    if (order.scaled.empty()) expect_same(file, order);
}

TEST(CropOrder, WhatIsDrawnDoesNotDependOnWhatIsDoneFirst) {
  const Picture file{jpeg_picture(41, 30)};
  const Words jitter{"brightness=0.4", "saturation=0.4", "hue=0.3"};
  const Order in_front{{"resize=28"}, {}, "random_crop=20", jitter};
  const Order behind{{"resize=28"}, jitter, "random_crop=20", {}};
  for (uint64_t stream = 0; stream < kStreams; ++stream)
    EXPECT_EQ(crop_first(file, in_front, stream), crop_first(file, behind, stream));
}

}  // namespace
}  // namespace lockstep::data
