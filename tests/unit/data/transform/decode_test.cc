#include "data/image/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "data/image/image_decoder.h"
#include "tests/support/fails_with.h"
#include "tests/unit/data/support/image_writer.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::Each;

Result<DecodedPart> decode_box(const std::string& encoded, PixelBox box, uint32_t shrink = 1,
                               uint32_t channels = 3) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ImageInfo info, read_image_info(span_of(encoded)));
  if (box.width == 0) box = {0, 0, info.width, info.height};
  DecodedPart part;
  LOCKSTEP_RETURN_IF_ERROR(decode(span_of(encoded), {info, box, shrink, channels}, part));
  return part;
}

std::string failure_of(const std::string& encoded) {
  const auto part = decode_box(encoded, {});
  return part.is_ok() ? "decoded" : part.status().message();
}

// Three bytes a pixel.
std::vector<uint8_t> colours_of(const DecodedPart& part) {
  std::vector<uint8_t> colours;
  for (size_t i = 0; i < part.bytes.size(); i += part.pixel_bytes)
    colours.insert(colours.end(), &part.bytes[i], &part.bytes[i] + 3);
  return colours;
}

uint32_t crc_of(const std::vector<uint8_t>& bytes) {
  return static_cast<uint32_t>(::crc32(0, bytes.data(), static_cast<uInt>(bytes.size())));
}

// From (3, H, W) to pixels, one after another.
std::vector<uint8_t> mixed(const std::vector<uint8_t>& planes) {
  std::vector<uint8_t> pixels;
  const size_t plane = planes.size() / 3;
  for (size_t i = 0; i < plane; ++i)
    pixels.insert(pixels.end(), {planes[i], planes[plane + i], planes[2 * plane + i]});
  return pixels;
}

TEST(Decode, GivesThePixelsThatPillowGives) {
  for (const auto& sample : image_samples::kSamples) {
    const auto part = decode_box(from_hex(sample.hex, sample.bytes), {});
    ASSERT_TRUE(part.is_ok()) << sample.name << part.status().message();
    EXPECT_EQ(part->box, (PixelBox{0, 0, image_samples::kWidth, image_samples::kHeight}));
    EXPECT_EQ(crc_of(colours_of(*part)), sample.crc) << sample.name;
  }
}

TEST(Decode, GreyImagesStayGreyWhereThatIsWanted) {
  for (const char* name : {"jpeg_grey", "png_grey", "png_grey16", "png_grey_opacity", "bmp_grey"}) {
    const auto grey = decode_box(image_sample(name), {}, 1, 1);
    const auto colours = decode_box(image_sample(name), {}, 1, 3);
    ASSERT_TRUE(grey.is_ok() && colours.is_ok()) << name;
    ASSERT_EQ(grey->pixel_bytes, 1U);
    for (size_t i = 0; i < grey->bytes.size(); ++i)
      ASSERT_EQ(grey->bytes[i], colours->bytes[i * colours->pixel_bytes]) << name << " " << i;
  }
}

TEST(Decode, ColoursBecomeGreyByTheirLightness) {
  for (const char* name : {"jpeg_444", "jpeg_cmyk", "png_colours", "webp_lossy", "bmp_palette"}) {
    const auto grey = decode_box(image_sample(name), {}, 1, 1);
    const auto colours = decode_box(image_sample(name), {}, 1, 3);
    ASSERT_TRUE(grey.is_ok() && colours.is_ok()) << name;
    double difference = 0;
    for (size_t i = 0; i < grey->bytes.size(); ++i) {
      const uint8_t* p = &colours->bytes[i * colours->pixel_bytes];
      difference += std::abs(grey->bytes[i] - (0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]));
    }
    // Of JPEG images some colours are beyond what bytes hold, and are cut off before.
    EXPECT_LT(difference / static_cast<double>(grey->bytes.size()), 1.0) << name;
  }
}

TEST(Decode, InterlacedImagesToo) {
  const auto colours = picture(37, 21);
  const auto part = decode_box(png_of(colours, 37, 21, /*interlaced=*/true), {});
  ASSERT_TRUE(part.is_ok());
  EXPECT_EQ(colours_of(*part), colours);
}

// The part of a whole that a box covers, both of them shrunk.
void expect_part_of(const DecodedPart& whole, const DecodedPart& part, const PixelBox& box) {
  const uint32_t shrink = part.shrink;
  const uint32_t right = (box.x + box.width + shrink - 1) / shrink;
  const uint32_t bottom = (box.y + box.height + shrink - 1) / shrink;
  ASSERT_LE(part.box.x, box.x / shrink);
  ASSERT_LE(part.box.y, box.y / shrink);
  ASSERT_GE(part.box.x + part.box.width, right);
  ASSERT_GE(part.box.y + part.box.height, bottom);
  const uint32_t n = part.pixel_bytes;
  for (uint32_t y = box.y / shrink; y < bottom; ++y) {
    const uint32_t x = box.x / shrink;
    const uint8_t* of_whole = &whole.bytes[(size_t{y} * whole.box.width + x) * n];
    const size_t at = size_t{y - part.box.y} * part.box.width + (x - part.box.x);
    const uint8_t* of_part = &part.bytes[at * n];
    ASSERT_TRUE(std::equal(of_whole, of_whole + size_t{right - x} * n, of_part))
        << "row " << y << " of the box at " << box.x << " " << box.y << ", " << box.width << " x "
        << box.height << ", shrunk by " << shrink;
  }
}

TEST(Decode, APartHasThePixelsOfTheWhole) {
  std::mt19937 draw(7);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(draw() % n); };
  for (const JpegKind& kind : {JpegKind{2, 2}, JpegKind{2, 1}, JpegKind{1, 1}, JpegKind{1, 2},
                               JpegKind{.progressive = true}, JpegKind{4, 1}}) {
    const uint32_t width = 200 + below(150);
    const uint32_t height = 150 + below(150);
    const std::string encoded = jpeg_of(picture(width, height), width, height, kind);
    for (const uint32_t shrink : {1U, 2U, 4U, 8U}) {
      const auto whole = decode_box(encoded, {}, shrink);
      ASSERT_TRUE(whole.is_ok()) << whole.status().message();
      for (int i = 0; i < 25; ++i) {
        const PixelBox box{below(width), below(height), 0, 0};
        const PixelBox drawn{box.x, box.y, 1 + below(width - box.x), 1 + below(height - box.y)};
        const auto part = decode_box(encoded, drawn, shrink);
        ASSERT_TRUE(part.is_ok()) << part.status().message();
        expect_part_of(*whole, *part, drawn);
      }
    }
  }
}

TEST(Decode, WhatIsTruncatedIsNoImage) {
  for (const auto& sample : image_samples::kSamples) {
    const std::string whole = from_hex(sample.hex, sample.bytes);
    for (size_t bytes = 0; bytes + 16 < whole.size(); bytes += 13)
      EXPECT_NE(failure_of(whole.substr(0, bytes)), "decoded") << sample.name << " " << bytes;
  }
}

TEST(Decode, SaysWhatIsWrong) {
  EXPECT_EQ(failure_of(""), "is empty");
  EXPECT_THAT(failure_of("<html>..."), Says("no JPEG", "PNG"));
  EXPECT_THAT(failure_of(image_sample("jpeg_420").substr(0, 600)),
              Says("JPEG", "decoded", "Premature end"));
  EXPECT_THAT(failure_of(image_sample("png_colours").substr(0, 600)),
              Says("PNG", "decoded", "truncated"));
  const std::pair<std::string, const char*> foreign[] = {{"GIF89a..", "GIF"},
                                                         {std::string("II*\0....", 8), "TIFF"},
                                                         {"P6\n1 1 255", "Netpbm"},
                                                         {std::string("\0\0\0\x18"
                                                                      "ftypheic",
                                                                      12),
                                                          "HEIC"},
                                                         {std::string("\0\0\0\x18"
                                                                      "ftypavif",
                                                                      12),
                                                          "AVIF"}};
  for (const auto& [bytes, kind] : foreign)
    EXPECT_THAT(failure_of(bytes), AllOf(Says(kind), Advises("PNG"))) << kind;
  EXPECT_THAT(failure_of(image_sample("webp_lossy").substr(0, 100)),
              Says("WebP", "decoded", "truncated"));
  EXPECT_THAT(failure_of(image_sample("bmp_colours").substr(0, 600)),
              Says("BMP", "decoded", "truncated"));
  std::string packed = image_sample("bmp_grey");
  for (const char runs : {1, 2}) {
    packed[30] = runs;
    EXPECT_THAT(failure_of(packed), AllOf(Says("BMP", "run-length"), Advises("PNG")));
  }
  packed[30] = 4;
  EXPECT_THAT(failure_of(packed), AllOf(Says("BMP", "compression 4"), Advises("PNG")));
  std::string damaged = image_sample("png_colours");
  damaged[200] = static_cast<char>(damaged[200] ^ 1);
  EXPECT_THAT(failure_of(damaged), Says("PNG", "decoded"));
}

TEST(Decode, HugeImagesAreRefusedBeforeTheyTakeMemory) {
  EXPECT_THAT(failure_of(png_saying(100'000, 100'000)), Says("100000 x 100000"));
  EXPECT_THAT(failure_of(png_saying(32'000, 32'000)), Says("32000 x 32000"));
  EXPECT_THAT(failure_of(png_saying(0, 5)), Says("0 x 5"));
}

// So many rows that are not there: a small file does not become a large image.
TEST(Decode, AnImageWithoutItsRowsIsTruncated) {
  EXPECT_THAT(failure_of(png_saying(image_samples::kWidth, 30'000)), Says("decoded"));
}

TEST(Resample, GivesWhatPillowGives) {
  const auto whole = decode_box(image_sample("png_colours"), {});
  ASSERT_TRUE(whole.is_ok());
  for (const auto& scaled : image_samples::kScaled) {
    const auto axis = [&](size_t i) {
      return AxisSpec{double{1} * scaled.box[i], double{1} * scaled.box[i + 2] - scaled.box[i],
                      scaled.size[i], scaled.window[i], scaled.window[i + 2] - scaled.window[i]};
    };
    ResampleScratch scratch;
    std::vector<uint8_t> out(size_t{3} * axis(0).count * axis(1).count);
    resample(*whole, axis(0), axis(1), scratch, out.data());
    EXPECT_EQ(crc_of(mixed(out)), scaled.crc) << scaled.size[0] << " x " << scaled.size[1];
  }
}

TEST(Resample, GreyAsColours) {
  const auto grey = decode_box(image_sample("png_grey"), {}, 1, 1);
  const auto colours = decode_box(image_sample("png_grey"), {}, 1, 3);
  ASSERT_TRUE(grey.is_ok() && colours.is_ok());
  const AxisSpec x{2.5, 36.25, 31, 3, 20};
  const AxisSpec y{1, 28, 90, 5, 70};
  ResampleScratch scratch;
  std::vector<uint8_t> of_grey(20 * 70);
  std::vector<uint8_t> of_colours(size_t{3} * 20 * 70);
  resample(*grey, x, y, scratch, of_grey.data());
  resample(*colours, x, y, scratch, of_colours.data());
  for (size_t c = 0; c < 3; ++c)
    EXPECT_TRUE(std::equal(of_grey.begin(), of_grey.end(), &of_colours[c * of_grey.size()]));
}

TEST(Resample, NothingBeyondTheSourceIsRead) {
  const auto grey = decode_box(image_sample("png_grey"), {}, 1, 1);
  ASSERT_TRUE(grey.is_ok());
  const AxisSpec half_beyond{20.5, 100, 10, 0, 10};
  const AxisSpec beyond{1000, 50, 10, 0, 10};
  const AxisSpec before{-1000, 50, 10, 0, 10};
  const AxisSpec within{0, 20, 10, 0, 10};
  ResampleScratch scratch;
  std::vector<uint8_t> out(10 * 10);
  resample(*grey, half_beyond, half_beyond, scratch, out.data());
  EXPECT_NE(out.front(), 0);
  EXPECT_EQ(out.back(), 0);
  for (const AxisSpec& outside : {beyond, before}) {
    out.assign(out.size(), 255);
    resample(*grey, outside, within, scratch, out.data());
    EXPECT_THAT(out, Each(0));
    out.assign(out.size(), 255);
    resample(*grey, within, outside, scratch, out.data());
    EXPECT_THAT(out, Each(0));
  }
}

TEST(ImageDecoder, CutsInTheMiddleAsTorchvisionDoes) {
  const std::string image = image_sample("png_colours");
  for (const auto& [resize, size, crc] : image_samples::kFramed) {
    const WantedImage wanted{{CropKind::kCenter, size, resize}, size, size, 3};
    std::vector<uint8_t> out(size_t{3} * size * size);
    ImageDecoder decoder;
    ASSERT_TRUE(decoder.decode(span_of(image), wanted, std::nullopt, out.data()).is_ok());
    EXPECT_EQ(crc_of(mixed(out)), crc) << resize << " " << size;
  }
}

TEST(ImageDecoder, WithoutAFrameEveryImageHasOneSize) {
  const std::string image = image_sample("png_colours");
  WantedImage wanted{{}, image_samples::kWidth, image_samples::kHeight, 3};
  std::vector<uint8_t> out(size_t{3} * wanted.width * wanted.height);
  ImageDecoder decoder;
  ASSERT_TRUE(decoder.decode(span_of(image), wanted, std::nullopt, out.data()).is_ok());
  EXPECT_EQ(mixed(out), colours_of(*decode_box(image, {})));
  wanted.width -= 1;
  EXPECT_THAT(decoder.decode(span_of(image), wanted, std::nullopt, out.data()).message(),
              Says("41 x 31", "40 x 31"));
}

// Shrinking while decoding saves work and may not show: what is left to scale is the same picture.
TEST(ImageDecoder, ALargeImageIsDecodedSmallerAndLooksTheSame) {
  const std::string image = jpeg_of(picture(640, 480), 640, 480, {.quality = 95});
  const WantedImage wanted{{CropKind::kCenter, 56, 64}, 56, 56, 3};
  std::vector<uint8_t> fast(size_t{3} * 56 * 56);
  ImageDecoder decoder;
  ASSERT_TRUE(decoder.decode(span_of(image), wanted, std::nullopt, fast.data()).is_ok());
  const auto whole = decode_box(image, {});
  ASSERT_TRUE(whole.is_ok());
  const FrameCut cut = cut_of(wanted.frame, 640, 480, std::nullopt);
  ResampleScratch scratch;
  std::vector<uint8_t> slow(fast.size());
  resample(*whole, {0, 640, cut.width, cut.window.x, 56}, {0, 480, cut.height, cut.window.y, 56},
           scratch, slow.data());
  double difference = 0;
  for (size_t i = 0; i < fast.size(); ++i) difference += std::abs(fast[i] - slow[i]);
  EXPECT_LT(difference / static_cast<double>(fast.size()), 2.0);
}

}  // namespace
}  // namespace lockstep::data
