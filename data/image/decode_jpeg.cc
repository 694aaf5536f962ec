#include "data/image/decode.h"

// jpeglib.h needs what the first two declare.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

constexpr int kScans = 100;  // of a progressive image; a few dozen are usual
constexpr long kMemoryBytes = 1'000'000'000;

// libjpeg calls these instead of returning an error. Nothing with a destructor may live between
// setjmp() and a call of the library.
struct Errors {
  jpeg_error_mgr base;  // first: the library hands back a pointer to it
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr common) {
  auto* errors = reinterpret_cast<Errors*>(common->err);
  common->err->format_message(common, errors->text);
  std::longjmp(errors->back, 1);
}

// Judges faults that most decoders only warn of. Missing or senseless bytes are an error. The other
// faults do no harm: the pixels are the same as without the fault.
void warn(j_common_ptr common, int level) {
  if (level >= 0) return;
  const int code = common->err->msg_code;
  const bool is_harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM ||
                           code == JWRN_JFIF_MAJOR || code == JWRN_NOT_SEQUENTIAL ||
                           code == JWRN_BOGUS_PROGRESSION;
  if (!is_harmless) leave(common);
}

void be_silent_jpeg(j_common_ptr) {}

void count_scans(j_common_ptr common) {
  const auto* image = reinterpret_cast<j_decompress_ptr>(common);
  if (image->input_scan_number <= kScans) return;
  auto* errors = reinterpret_cast<Errors*>(common->err);
  std::snprintf(errors->text, sizeof errors->text, "more than %d scans", kScans);
  std::longjmp(errors->back, 1);
}

// Four inks as Adobe's programs write them: 255 means no ink. Pillow reads all files this way, also
// files without Adobe's marker.
void inks_to_colours(const uint8_t* in, uint32_t pixels, uint8_t* out) {
  for (uint32_t i = 0; i < pixels; ++i, in += 4, out += 4) {
    const uint32_t light = in[3];
    for (int c = 0; c < 3; ++c) {
      const uint32_t ink = 255U - in[c];
      const uint32_t product = ink * light + 128;
      out[c] = static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
    }
    out[3] = 255;
  }
}

// Destroys without jpeg_finish_decompress(), so nothing below the box is decoded.
struct Decompressor {
  jpeg_decompress_struct image{};
  ~Decompressor() { jpeg_destroy_decompress(&image); }
};

J_COLOR_SPACE colours_wanted(const jpeg_decompress_struct& image, uint32_t channels) {
  if (image.num_components == 4) return JCS_CMYK;
  return channels == 1 ? JCS_GRAYSCALE : JCS_EXT_RGBX;
}

uint32_t shrunk(uint32_t pixels, uint32_t shrink) {
  return (pixels + shrink - 1) / shrink;
}

// The columns and rows that the box covers, with a block more on either side: at the edges of a
// part, the library interpolates colours from fewer pixels than in the whole image.
PixelBox part_of(const DecodeRequest& request, const jpeg_decompress_struct& image) {
  const uint32_t margin = 2U * DCTSIZE;
  const auto begin = [&](uint32_t at) {
    const uint32_t first = at / request.shrink;
    return first > margin ? first - margin : 0;
  };
  const auto end = [&](uint32_t at, uint32_t most) {
    return std::min(shrunk(at, request.shrink) + margin, most);
  };
  const PixelBox& box = request.box;
  PixelBox part{begin(box.x), begin(box.y), 0, 0};
  part.width = end(box.x + box.width, image.output_width) - part.x;
  part.height = end(box.y + box.height, image.output_height) - part.y;
  return part;
}

// REQUIRES: the caller has called setjmp() for `errors`.
void read_part(jpeg_decompress_struct& image, const DecodeRequest& request, DecodedPart& out) {
  jpeg_read_header(&image, TRUE);
  // The caller relies on these sizes, and has bounded memory by them.
  if (image.image_width != request.info.width || image.image_height != request.info.height)
    ERREXIT(&image, JERR_BAD_CROP_SPEC);
  image.out_color_space = colours_wanted(image, request.channels);
  image.scale_num = 1;
  image.scale_denom = request.shrink;
  image.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&image);
  out.box = part_of(request, image);
  // The library begins at a whole block, and says where.
  jpeg_crop_scanline(&image, &out.box.x, &out.box.width);
  out.shrink = request.shrink;
  out.pixel_bytes = static_cast<uint32_t>(image.output_components);
  if (out.box.y > 0) jpeg_skip_scanlines(&image, out.box.y);
  const size_t row_bytes = size_t{out.box.width} * out.pixel_bytes;
  out.bytes.resize(row_bytes * out.box.height);
  for (uint32_t y = 0; y < out.box.height;) {
    JSAMPROW row = out.bytes.data() + y * row_bytes;
    y += jpeg_read_scanlines(&image, &row, 1);
  }
}

void inks_to_wanted(uint32_t channels, DecodedPart& out) {
  const uint32_t pixels = out.box.width * out.box.height;
  inks_to_colours(out.bytes.data(), pixels, out.bytes.data());
  if (channels == 1) colours_to_grey(out);
}

}  // namespace

Status decode_jpeg(std::span<const uint8_t> encoded, const DecodeRequest& request,
                   DecodedPart& out) {
  Errors errors{};
  jpeg_progress_mgr progress{};
  Decompressor decompressor;
  jpeg_decompress_struct& image = decompressor.image;
  image.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = warn;
  errors.base.output_message = be_silent_jpeg;
  progress.progress_monitor = count_scans;
  if (setjmp(errors.back) != 0)
    return bad(std::string("is a JPEG image that cannot be decoded: ") + errors.text);
  jpeg_create_decompress(&image);
  image.mem->max_memory_to_use = kMemoryBytes;
  image.progress = &progress;
  jpeg_mem_src(&image, encoded.data(), encoded.size());
  read_part(image, request, out);
  if (image.out_color_space == JCS_CMYK) inks_to_wanted(request.channels, out);
  return Status::ok();
}

}  // namespace lockstep::data
