// Images for tests: JPEG and PNG files of a picture that is the same everywhere, and directories of
// them.
#pragma once

// jpeglib.h needs what the first two declare.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on
#include <png.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tests/unit/data/samples/image_samples.h"

namespace lockstep::data {

inline std::span<const uint8_t> span_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

struct JpegKind {
  int across = 2;  // colours are kept once for so many pixels
  int down = 2;
  bool progressive = false;
  int quality = 85;
};

// Smooth, with a little noise; another one for every `kind_of_picture`.
inline std::vector<uint8_t> picture(uint32_t width, uint32_t height, uint32_t kind_of_picture = 0) {
  std::vector<uint8_t> bytes;
  bytes.reserve(size_t{3} * width * height);
  uint32_t noise = 12'345 + kind_of_picture;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      noise = noise * 1'664'525 + 1'013'904'223;
      const uint32_t grain = noise >> 28;
      bytes.push_back(static_cast<uint8_t>((x + 40 * kind_of_picture) * 2 + grain));
      bytes.push_back(static_cast<uint8_t>(y * 3 + grain));
      bytes.push_back(static_cast<uint8_t>(x * y / 64 + 90 * kind_of_picture));
    }
  }
  return bytes;
}

inline std::string jpeg_of(const std::vector<uint8_t>& colours, uint32_t width, uint32_t height,
                           const JpegKind& kind = {}) {
  jpeg_error_mgr errors{};
  jpeg_compress_struct image{};
  image.err = jpeg_std_error(&errors);
  jpeg_create_compress(&image);
  unsigned char* out = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&image, &out, &bytes);
  image.image_width = width;
  image.image_height = height;
  image.input_components = 3;
  image.in_color_space = JCS_RGB;
  jpeg_set_defaults(&image);
  jpeg_set_quality(&image, kind.quality, TRUE);
  image.comp_info[0].h_samp_factor = kind.across;
  image.comp_info[0].v_samp_factor = kind.down;
  if (kind.progressive) jpeg_simple_progression(&image);
  jpeg_start_compress(&image, TRUE);
  for (uint32_t y = 0; y < height; ++y) {
    JSAMPROW row = const_cast<uint8_t*>(colours.data() + size_t{y} * width * 3);
    jpeg_write_scanlines(&image, &row, 1);
  }
  jpeg_finish_compress(&image);
  std::string encoded(reinterpret_cast<const char*>(out), bytes);
  jpeg_destroy_compress(&image);
  std::free(out);
  return encoded;
}

inline std::string png_of(const std::vector<uint8_t>& colours, uint32_t width, uint32_t height,
                          bool interlaced = false) {
  std::string encoded;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &encoded,
      [](png_structp p, png_bytep data, size_t bytes) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(data), bytes);
      },
      nullptr);
  png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB,
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_bytep> rows;
  for (uint32_t y = 0; y < height; ++y)
    rows.push_back(const_cast<uint8_t*>(colours.data() + size_t{y} * width * 3));
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return encoded;
}

// A picture as a JPEG file.
inline std::string jpeg_picture(uint32_t width, uint32_t height, uint32_t kind_of_picture = 0) {
  return jpeg_of(picture(width, height, kind_of_picture), width, height);
}

inline std::string from_hex(const char* hex, uint32_t bytes) {
  std::string out;
  for (uint32_t i = 0; i < bytes; ++i)
    out += static_cast<char>(std::stoi(std::string(hex + 2 * i, 2), nullptr, 16));
  return out;
}

// One of image_samples::kSamples.
inline std::string image_sample(const std::string& name) {
  for (const auto& sample : image_samples::kSamples)
    if (name == sample.name) return from_hex(sample.hex, sample.bytes);
  std::abort();
}

// A PNG header that says any size.
inline std::string png_saying(uint32_t width, uint32_t height) {
  std::string image = image_sample("png_colours");
  for (size_t i = 0; i < 4; ++i) {
    image[16 + i] = static_cast<char>(width >> (24 - 8 * i));
    image[20 + i] = static_cast<char>(height >> (24 - 8 * i));
  }
  const auto crc =
      static_cast<uint32_t>(::crc32(0, reinterpret_cast<const uint8_t*>(image.data()) + 12, 17));
  for (size_t i = 0; i < 4; ++i) image[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
  return image;
}

}  // namespace lockstep::data
