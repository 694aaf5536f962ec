// Masks: which files can be one, and which values they give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/image/image_decoder.h"
#include "data/image/image_info.h"
#include "tests/support/fails_with.h"
#include "tests/unit/data/support/image_writer.h"
#include "tests/unit/data/support/mask_writer.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Values = std::vector<uint8_t>;

constexpr uint32_t kWide = 41;
constexpr uint32_t kHigh = 31;

Values some_values(int bits, uint32_t width = kWide, uint32_t height = kHigh) {
  Values values(size_t{width} * height);
  uint32_t noise = 99;
  for (uint8_t& value : values) {
    noise = noise * 1'664'525 + 1'013'904'223;
    value = static_cast<uint8_t>((noise >> 20) & ((1U << bits) - 1));
  }
  return values;
}

Result<Values> decoded(const std::string& file, const WantedImage& form,
                       std::optional<uint64_t> stream = {}) {
  ImageDecoder decoder;
  Values out(size_t{form.width} * form.height);
  LOCKSTEP_RETURN_IF_ERROR(decoder.decode_mask(span_of(file), form, stream, out.data()));
  return out;
}

std::string refusal(const std::string& file) {
  const auto info = read_mask_info(span_of(file));
  return info.is_ok() ? "none" : info.status().message();
}

TEST(Mask, GreyAndPaletteOfEveryDepthGiveTheValuesAsStored) {
  for (const bool has_palette : {false, true}) {
    for (const bool is_interlaced : {false, true}) {
      for (const int bits : {1, 2, 4, 8}) {
        const Values values = some_values(bits);
        const std::string file = mask_png(values, kWide, kHigh, {bits, has_palette, is_interlaced});
        EXPECT_EQ(read_mask_info(span_of(file))->channels, 1U);
        const auto got = decoded(file, {{}, kWide, kHigh, 3});
        ASSERT_TRUE(got.is_ok()) << got.status().message();
        EXPECT_EQ(*got, values) << bits << has_palette << is_interlaced;
      }
    }
  }
}

TEST(Mask, WhatHasNoValuesOrLosesThemIsRefusedByItsKind) {
  EXPECT_THAT(refusal(jpeg_picture(20, 20)), AllOf(HasSubstr("JPEG"), Advises("palette PNG")));
  EXPECT_THAT(refusal(png_of(picture(20, 20), 20, 20)), HasSubstr("PNG image of colours"));
  EXPECT_THAT(refusal(image_sample("png_opacity")), HasSubstr("PNG image of colours"));
  EXPECT_THAT(refusal(image_sample("png_grey_opacity")), HasSubstr("opacity"));
  EXPECT_THAT(refusal(image_sample("png_grey16")), HasSubstr("16 bits"));
  EXPECT_THAT(refusal(image_sample("webp_lossless")), HasSubstr("WebP image"));
  EXPECT_THAT(refusal(image_sample("bmp_grey")), HasSubstr("BMP image"));
  EXPECT_THAT(refusal("no image at all"), HasSubstr("no JPEG, PNG"));
}

// A header that says grey over pixels of another kind gives no other memory than was asked for.
TEST(Mask, DamageIsRefused) {
  const std::string good = mask_png(some_values(4), kWide, kHigh, {4, true});
  const WantedImage form{{}, kWide, kHigh, 1};
  for (size_t bytes = 0; bytes + 20 < good.size(); bytes += 7)
    EXPECT_FALSE(decoded(good.substr(0, bytes), form).is_ok()) << bytes;
  std::string other = good;
  other[25] = 2;  // colours; its checksum is now another one
  EXPECT_FALSE(decoded(other, form).is_ok());
  EXPECT_THAT(decoded(good, {{}, kWide + 1, kHigh, 1}).status().message(),
              HasSubstr("41 x 31 pixels, the others have 42 x 31"));
  EXPECT_FALSE(read_mask_info(span_of(png_saying(100'000, 100'000))).is_ok());
}

TEST(Mask, EveryPixelIsTheOneInWhichItsMiddleLies) {
  for (const uint32_t wide : {17U, 64U, 200U}) {
    const Values values = some_values(8, wide, kHigh);
    const std::string file = mask_png(values, wide, kHigh);
    for (const ImageFrame& frame :
         {ImageFrame{CropKind::kRandomResized, 24, 0}, ImageFrame{CropKind::kRandom, 10, 16},
          ImageFrame{CropKind::kCenter, 16, 0}, ImageFrame{CropKind::kRandom, 12, 90, 0.5, 0.5}}) {
      for (uint64_t stream = 0; stream < 40; ++stream) {
        const FrameCut cut = cut_of(frame, wide, kHigh, stream);
        const auto got = decoded(file, {frame, frame.size, frame.size, 3}, stream);
        ASSERT_TRUE(got.is_ok()) << got.status().message();
        for (uint32_t y = 0; y < frame.size; ++y) {
          for (uint32_t x = 0; x < frame.size; ++x) {
            const double column = cut.box.x + (cut.window.x + x + 0.5) * cut.box.width / cut.width;
            const double row = cut.box.y + (cut.window.y + y + 0.5) * cut.box.height / cut.height;
            const auto at = static_cast<size_t>(std::floor(row) * wide + std::floor(column));
            ASSERT_EQ((*got)[size_t{y} * frame.size + x], values[at]) << x << " " << y;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::data
