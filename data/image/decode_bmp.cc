#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "comm/base/little_endian.h"
#include "data/base/file_errors.h"
#include "data/image/decode.h"

namespace lockstep::data {
namespace {

constexpr size_t kFileHeaderBytes = 14;
constexpr uint32_t kCoreHeaderBytes = 12;  // of OS/2; Windows' have 40 and more
constexpr uint32_t kRuns8 = 1;             // run-length encoding, of 8 and of 4 bits
constexpr uint32_t kRuns4 = 2;
constexpr uint32_t kBitFields = 3;
constexpr uint32_t kMostPalette = 256;

// A value's bits in a pixel.
struct Mask {
  uint32_t shift = 0;
  uint32_t most = 0;  // the largest value

  uint8_t of(uint32_t pixel) const {
    return static_cast<uint8_t>(most == 0 ? 0 : (pixel >> shift & most) * 255 / most);
  }
};

struct Bmp {
  ImageInfo info;
  uint32_t bits = 0;  // of a pixel
  bool is_upside_down = true;
  uint64_t pixels_at = 0;
  uint64_t row_bytes = 0;
  std::array<Mask, 3> masks;  // red, green, blue; of 16 and 32 bits
  std::array<std::array<uint8_t, 3>, kMostPalette> palette{};
};

Status ends_early_bmp() {
  return bad("is truncated: it ends before the size of the image");
}

Mask mask_of(uint32_t bits) {
  Mask mask;
  if (bits == 0) return mask;
  while ((bits >> mask.shift & 1) == 0) ++mask.shift;
  mask.most = bits >> mask.shift;
  return mask;
}

// One run of at most 8 bits. More bits, times 255, would not overflow, but are no image.
bool is_usual(const Mask& mask) {
  return mask.most <= 255 && (mask.most & (mask.most + 1)) == 0;
}

Status read_masks(std::span<const uint8_t> bytes, uint32_t header_bytes, uint32_t compression,
                  Bmp& bmp) {
  constexpr std::array<uint32_t, 3> k555 = {0x7C00, 0x03E0, 0x001F};
  constexpr std::array<uint32_t, 3> k888 = {0xFF0000, 0x00FF00, 0x0000FF};
  std::array<uint32_t, 3> said = bmp.bits == 16 ? k555 : k888;
  if (compression == kBitFields) {
    // The masks are in the header, or follow a header of 40 bytes.
    const size_t at = kFileHeaderBytes + 40;
    if (bytes.size() < at + 12) return ends_early_bmp();
    for (size_t i = 0; i < 3; ++i) said[i] = load_le<uint32_t>(bytes.data() + at + 4 * i);
    if (header_bytes == 40) bmp.pixels_at = std::max<uint64_t>(bmp.pixels_at, at + 12);
  }
  for (size_t i = 0; i < 3; ++i) {
    bmp.masks[i] = mask_of(said[i]);
    if (!is_usual(bmp.masks[i])) return bad("is damaged: a BMP image with impossible bit masks");
  }
  return Status::ok();
}

Status read_palette(std::span<const uint8_t> bytes, uint32_t header_bytes, uint32_t said,
                    Bmp& bmp) {
  const uint32_t most = 1U << bmp.bits;
  const uint32_t colours = said == 0 ? most : std::min(said, most);
  const size_t each = header_bytes == kCoreHeaderBytes ? 3 : 4;
  const size_t at = kFileHeaderBytes + header_bytes;
  if (bytes.size() < at + each * colours) return ends_early_bmp();
  bool is_grey = true;
  for (uint32_t i = 0; i < colours; ++i) {
    const uint8_t* entry = bytes.data() + at + each * i;
    bmp.palette[i] = {entry[2], entry[1], entry[0]};
    is_grey = is_grey && entry[0] == entry[1] && entry[1] == entry[2];
  }
  bmp.info.channels = is_grey ? 1 : 3;
  return Status::ok();
}

Status refused_bmp(const std::string& why) {
  return bad("is a BMP image " + why + ", which Lockstep does not decode; write it as PNG");
}

Result<Bmp> parse_bmp(std::span<const uint8_t> bytes) {
  if (bytes.size() < kFileHeaderBytes + 4) return ends_early_bmp();
  const uint32_t header_bytes = load_le<uint32_t>(bytes.data() + kFileHeaderBytes);
  const bool is_core = header_bytes == kCoreHeaderBytes;
  if (!is_core && (header_bytes < 40 || header_bytes > 124))
    return refused_bmp("with a header of " + std::to_string(header_bytes) + " bytes");
  if (bytes.size() < kFileHeaderBytes + header_bytes) return ends_early_bmp();
  const uint8_t* header = bytes.data() + kFileHeaderBytes;
  Bmp bmp;
  bmp.pixels_at = load_le<uint32_t>(bytes.data() + 10);
  int64_t height = 0;
  uint32_t compression = 0;
  uint32_t colours = 0;
  if (is_core) {
    bmp.info.width = load_le<uint16_t>(header + 4);
    height = load_le<uint16_t>(header + 6);
    bmp.bits = load_le<uint16_t>(header + 10);
  } else {
    bmp.info.width = load_le<uint32_t>(header + 4);
    height = load_le<int32_t>(header + 8);
    bmp.bits = load_le<uint16_t>(header + 14);
    compression = load_le<uint32_t>(header + 16);
    colours = load_le<uint32_t>(header + 32);
  }
  bmp.is_upside_down = height > 0;
  bmp.info.height = static_cast<uint32_t>(height < 0 ? -height : height);
  bmp.info.codec = ImageCodec::kBmp;
  bmp.info.channels = 3;
  const bool has_masks = compression == kBitFields && (bmp.bits == 16 || bmp.bits == 32);
  if (compression == kRuns8 || compression == kRuns4)
    return refused_bmp("with run-length encoding");
  if (compression != 0 && !has_masks)
    return refused_bmp("with compression " + std::to_string(compression));
  if (bmp.bits == 1 || bmp.bits == 4 || bmp.bits == 8)
    LOCKSTEP_RETURN_IF_ERROR(read_palette(bytes, header_bytes, colours, bmp));
  else if (bmp.bits == 16 || bmp.bits == 24 || bmp.bits == 32)
    LOCKSTEP_RETURN_IF_ERROR(read_masks(bytes, header_bytes, compression, bmp));
  else
    return refused_bmp("of " + std::to_string(bmp.bits) + " bits a pixel");
  bmp.row_bytes = (uint64_t{bmp.info.width} * bmp.bits + 31) / 32 * 4;
  return bmp;
}

std::array<uint8_t, 3> colours_at(const Bmp& bmp, const uint8_t* row, uint32_t x) {
  if (bmp.bits <= 8) {
    const uint32_t bit = x * bmp.bits;
    const uint32_t shift = 8 - bmp.bits - bit % 8;
    return bmp.palette[row[bit / 8] >> shift & ((1U << bmp.bits) - 1)];
  }
  if (bmp.bits == 24) return {row[3 * x + 2], row[3 * x + 1], row[3 * x]};
  const uint32_t pixel = bmp.bits == 16 ? load_le<uint16_t>(row + 2 * size_t{x})
                                        : load_le<uint32_t>(row + 4 * size_t{x});
  return {bmp.masks[0].of(pixel), bmp.masks[1].of(pixel), bmp.masks[2].of(pixel)};
}

}  // namespace

Result<ImageInfo> bmp_info(std::span<const uint8_t> bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Bmp bmp, parse_bmp(bytes));
  return bmp.info;
}

Status decode_bmp(std::span<const uint8_t> encoded, const DecodeRequest& request,
                  DecodedPart& out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Bmp bmp, parse_bmp(encoded));
  if (bmp.info.width != request.info.width || bmp.info.height != request.info.height)
    return bad("is a BMP image that changed while it was read");
  const uint64_t end = bmp.pixels_at + bmp.row_bytes * bmp.info.height;
  if (end > encoded.size())
    return bad("is a BMP image that cannot be decoded: it is truncated, since it has " +
               std::to_string(encoded.size()) + " bytes of " + std::to_string(end));
  const PixelBox& box = request.box;
  out.box = box;
  out.shrink = 1;
  out.pixel_bytes = 4;
  out.bytes.resize(size_t{box.width} * box.height * 4);
  uint8_t* to = out.bytes.data();
  for (uint32_t y = box.y; y < box.y + box.height; ++y) {
    const uint32_t stored = bmp.is_upside_down ? bmp.info.height - 1 - y : y;
    const uint8_t* row = encoded.data() + bmp.pixels_at + bmp.row_bytes * stored;
    for (uint32_t x = box.x; x < box.x + box.width; ++x, to += 4) {
      const auto colours = colours_at(bmp, row, x);
      std::copy(colours.begin(), colours.end(), to);
      to[3] = 255;
    }
  }
  if (request.channels == 1) colours_to_grey(out);
  return Status::ok();
}

}  // namespace lockstep::data
