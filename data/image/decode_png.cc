#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>

#include "data/base/file_errors.h"
#include "data/image/decode.h"

namespace lockstep::data {
namespace {

constexpr png_alloc_size_t kChunkBytes = 8'000'000;  // of a chunk without pixels

struct Source {
  std::span<const uint8_t> rest;
  std::string error;  // set by fail(), which does not return
};

// libpng calls these instead of returning an error.
[[noreturn]] void fail(png_structp png, png_const_charp text) {
  static_cast<Source*>(png_get_error_ptr(png))->error = text;
  png_longjmp(png, 1);
}

void be_silent_png(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, size_t bytes) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (bytes > source->rest.size()) png_error(png, "it is truncated");
  std::memcpy(out, source->rest.data(), bytes);
  source->rest = source->rest.subspan(bytes);
}

void give_as_wanted(png_structp png, png_infop info, uint32_t channels) {
  png_set_expand(png);  // palettes to colours, few bits to 8
  png_set_scale_16(png);
  png_set_strip_alpha(png);
  const bool is_grey = (png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) == 0;
  if (channels == 3 && is_grey) png_set_gray_to_rgb(png);
  if (channels == 1 && !is_grey)
    png_set_rgb_to_gray_fixed(png, PNG_ERROR_ACTION_NONE, 29'900, 58'700);
  if (channels == 3) png_set_filler(png, 0, PNG_FILLER_AFTER);
}

void give_values(png_structp png, png_infop info) {
  const int colour = png_get_color_type(png, info);
  const bool is_mask = colour == PNG_COLOR_TYPE_GRAY || colour == PNG_COLOR_TYPE_PALETTE;
  if (!is_mask || png_get_bit_depth(png, info) > 8) png_error(png, "it is no mask");
  png_set_packing(png);  // a byte for each value of few bits
}

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

// False when libpng has called fail(). Nothing in here has a destructor.
bool read_image(const Reader& reader, const DecodeRequest& request, DecodedPart& out) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_info(reader.png, reader.info);
  if (png_get_image_width(reader.png, reader.info) != request.info.width ||
      png_get_image_height(reader.png, reader.info) != request.info.height)
    png_error(reader.png, "its size is not the one in its header");
  if (request.as_values)
    give_values(reader.png, reader.info);
  else
    give_as_wanted(reader.png, reader.info, request.channels);
  const int passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  const size_t row_bytes = size_t{request.info.width} * out.pixel_bytes;
  if (png_get_rowbytes(reader.png, reader.info) != row_bytes)
    png_error(reader.png, "its kind of pixels is not known");
  out.bytes.resize(row_bytes * request.info.height);
  for (int pass = 0; pass < passes; ++pass)
    for (uint32_t y = 0; y < request.info.height; ++y)
      png_read_row(reader.png, out.bytes.data() + y * row_bytes, nullptr);
  return true;
}

}  // namespace

Status decode_png(std::span<const uint8_t> encoded, const DecodeRequest& request,
                  DecodedPart& out) {
  Source source{encoded, {}};
  Reader reader;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, fail, be_silent_png);
  if (reader.png == nullptr) return {Code::kInternal, "no memory for a PNG image"};
  reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr) return {Code::kInternal, "no memory for a PNG image"};
  png_set_read_fn(reader.png, &source, read_bytes);
  png_set_user_limits(reader.png, request.info.width, request.info.height);
  png_set_chunk_malloc_max(reader.png, kChunkBytes);
  // Colour profiles are not applied: what is stored is what is learned from.
  png_set_option(reader.png, PNG_SKIP_sRGB_CHECK_PROFILE, PNG_OPTION_ON);
  out.box = {0, 0, request.info.width, request.info.height};
  out.shrink = 1;
  out.pixel_bytes = request.channels == 1 ? 1 : 4;
  if (!read_image(reader, request, out))
    return bad("is a PNG image that cannot be decoded: " + source.error);
  return Status::ok();
}

}  // namespace lockstep::data
