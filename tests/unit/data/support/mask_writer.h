// Masks for tests: PNG files of grey or palette values.
#pragma once

#include <png.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

struct MaskFile {
  int bits = 8;
  bool has_palette = false;  // of 2^bits colours
  bool is_interlaced = false;
};

// `values`: height x width, each below 2^bits.
inline std::string mask_png(const std::vector<uint8_t>& values, uint32_t width, uint32_t height,
                            const MaskFile& kind = {}) {
  std::string encoded;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &encoded,
      [](png_structp p, png_bytep data, size_t bytes) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(data), bytes);
      },
      nullptr);
  png_set_IHDR(png, info, width, height, kind.bits,
               kind.has_palette ? PNG_COLOR_TYPE_PALETTE : PNG_COLOR_TYPE_GRAY,
               kind.is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette(size_t{1} << kind.bits);
  for (size_t i = 0; i < palette.size(); ++i)
    palette[i] = {static_cast<png_byte>(255 - i), static_cast<png_byte>(37 * i), 7};
  if (kind.has_palette) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  std::vector<png_bytep> rows;
  for (uint32_t y = 0; y < height; ++y)
    rows.push_back(const_cast<uint8_t*>(values.data() + size_t{y} * width));
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_PACKING, nullptr);
  png_destroy_write_struct(&png, &info);
  return encoded;
}

}  // namespace lockstep::data
