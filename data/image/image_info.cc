#include "data/image/image_info.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "comm/base/limits.h"
#include "comm/base/text/lower_case.h"
#include "data/base/file_errors.h"
#include "data/image/decode.h"

namespace lockstep::data {
namespace {

constexpr std::array<uint8_t, 8> kPngSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

constexpr size_t kPngBitsAt = 24;  // of a pixel's value, then the colour type

constexpr std::string_view kReadEndings[] = {"jpg", "jpeg", "jpe", "jfif", "png", "webp", "bmp"};
constexpr std::string_view kForeignEndings[] = {
    "tif", "tiff", "gif", "heic", "heif", "avif", "jp2", "j2k", "jxl", "ppm", "pgm",
    "pbm", "pnm",  "tga", "psd",  "ico",  "dng",  "cr2", "nef", "arw", "exr", "hdr"};

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  return std::find(endings.begin(), endings.end(), lower_case(name.substr(dot + 1))) !=
         endings.end();
}

uint32_t big16(const uint8_t* p) {
  return uint32_t{p[0]} << 8 | p[1];
}

uint32_t big32(const uint8_t* p) {
  return big16(p) << 16 | big16(p + 2);
}

Status ends_early() {
  return bad("is truncated: it ends before the size of the image");
}

Result<ImageInfo> checked(const ImageInfo& info) {
  const std::string sides = std::to_string(info.width) + " x " + std::to_string(info.height);
  if (info.width == 0 || info.height == 0)
    return bad("is damaged: its header says " + sides + " pixels");
  if (info.width > limits::kImageSide || info.height > limits::kImageSide ||
      uint64_t{info.width} * info.height > limits::kImagePixels)
    return bad("is an image of " + sides + " pixels; the limit is " +
               std::to_string(limits::kImageSide) + " a side and " +
               std::to_string(limits::kImagePixels) + " in all, so scale it down");
  return info;
}

Result<ImageInfo> png_info(std::span<const uint8_t> bytes) {
  constexpr size_t kHeaderBytes = 8 + 8 + 13;
  if (bytes.size() < kHeaderBytes) return ends_early();
  const uint8_t* chunk = bytes.data() + kPngSignature.size();
  if (big32(chunk) != 13 || std::memcmp(chunk + 4, "IHDR", 4) != 0)
    return bad("is damaged: a PNG image that does not begin with its header");
  const uint8_t colour = chunk[17];  // 0 grey, 2 colours, 3 a palette, 4 and 6 with opacity
  if (colour > 6 || colour == 1 || colour == 5)
    return bad("is damaged: a PNG image of colour type " + std::to_string(colour));
  return checked({ImageCodec::kPng, big32(chunk + 8), big32(chunk + 12),
                  colour == 0 || colour == 4 ? 1U : 3U});
}

// `segment`: of a frame, after SOF and its length.
Result<ImageInfo> frame_info(uint8_t marker, const uint8_t* segment, size_t bytes) {
  if (bytes < 6) return bad("is damaged: a JPEG frame of " + std::to_string(bytes) + " bytes");
  const uint8_t kind = marker - 0xc0;
  const bool is_lossless = (kind & 3) == 3;
  const bool is_differential = (kind & 7) > 3;
  if (is_lossless || is_differential || segment[0] != 8)
    return bad("is a JPEG image of a kind that Lockstep does not decode (frame type " +
               std::to_string(kind) + ", " + std::to_string(segment[0]) +
               " bits); write it as a baseline or progressive JPEG of 8 bits");
  const uint8_t components = segment[5];
  if (components != 1 && components != 3 && components != 4)
    return bad("is damaged: a JPEG image of " + std::to_string(components) + " components");
  return checked(
      {ImageCodec::kJpeg, big16(segment + 3), big16(segment + 1), components == 1 ? 1U : 3U});
}

bool is_frame(uint8_t marker) {
  const bool is_table = marker == 0xc4 || marker == 0xc8 || marker == 0xcc;
  return marker >= 0xc0 && marker <= 0xcf && !is_table;
}

Result<ImageInfo> jpeg_info(std::span<const uint8_t> bytes) {
  size_t at = 2;
  while (true) {
    if (at + 4 > bytes.size()) return ends_early();
    const uint8_t marker = bytes[at + 1];
    if (bytes[at] != 0xff || marker == 0xff ||
        marker == 0) {  // filling, or stray: libjpeg skips it
      ++at;
      continue;
    }
    if (marker == 0xd9 || marker == 0xda)
      return bad("is damaged: a JPEG image without a frame header, which holds its size");
    const size_t length = big16(&bytes[at + 2]);  // with itself
    if (length < 2) return bad("is damaged: a JPEG segment of " + std::to_string(length));
    if (is_frame(marker)) {
      if (at + 2 + length > bytes.size()) return ends_early();
      return frame_info(marker, &bytes[at + 4], length - 2);
    }
    at += 2 + length;
  }
}

}  // namespace

namespace {

struct Signature {
  std::string_view bytes;
  size_t at = 0;
};

bool begins(std::span<const uint8_t> bytes, const Signature& signature) {
  return bytes.size() >= signature.at + signature.bytes.size() &&
         std::memcmp(bytes.data() + signature.at, signature.bytes.data(), signature.bytes.size()) ==
             0;
}

bool is_webp(std::span<const uint8_t> bytes) {
  return begins(bytes, {"RIFF", 0}) && begins(bytes, {"WEBP", 8});
}

// Kinds of images that are not decoded here; empty: none that is known.
std::string foreign_kind(std::span<const uint8_t> bytes) {
  constexpr std::pair<const char*, Signature> kKnown[] = {
      {"GIF", {"GIF8", 0}},
      {"TIFF", {std::string_view("II*\0", 4), 0}},
      {"TIFF", {std::string_view("MM\0*", 4), 0}},
      {"HEIC", {"ftypheic", 4}},
      {"HEIC", {"ftypmif1", 4}},
      {"AVIF", {"ftypavif", 4}},
      {"JPEG 2000", {std::string_view("\0\0\0\x0cjP  ", 8), 0}},
      {"JPEG XL", {std::string_view("\0\0\0\x0cJXL ", 8), 0}},
      {"Netpbm", {"P5\n", 0}},
      {"Netpbm", {"P6\n", 0}},
      {"Photoshop", {"8BPS", 0}},
  };
  for (const auto& [kind, signature] : kKnown)
    if (begins(bytes, signature)) return kind;
  return "";
}

}  // namespace

Result<ImageInfo> read_image_info(std::span<const uint8_t> bytes) {
  if (bytes.size() >= 2 && bytes[0] == 0xff && bytes[1] == 0xd8) return jpeg_info(bytes);
  const size_t n = std::min(bytes.size(), kPngSignature.size());
  if (n >= 2 &&
      std::equal(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n), kPngSignature.begin()))
    return png_info(bytes);
  if (bytes.size() < 2) return bad(bytes.empty() ? "is empty" : "is truncated: it has one byte");
  if (is_webp(bytes)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const ImageInfo info, webp_info(bytes));
    return checked(info);
  }
  if (begins(bytes, {"BM", 0})) {
    LOCKSTEP_ASSIGN_OR_RETURN(const ImageInfo info, bmp_info(bytes));
    return checked(info);
  }
  if (const std::string kind = foreign_kind(bytes); !kind.empty())
    return bad("is a " + kind +
               " image, a kind that Lockstep does not decode; write it as JPEG, PNG, WebP or BMP");
  return bad("is no JPEG, PNG, WebP or BMP image, going by its first bytes");
}

Result<ImageInfo> read_mask_info(std::span<const uint8_t> bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(ImageInfo info, read_image_info(bytes));
  const auto no_mask = [](const std::string& what, const std::string& why) {
    return bad("is a " + what + ", which cannot be a mask: " + why +
               "; write the mask as a grey or palette PNG");
  };
  if (info.codec == ImageCodec::kJpeg)
    return no_mask("JPEG image", "JPEG does not keep the values of pixels");
  if (info.codec != ImageCodec::kPng)
    return no_mask(info.codec == ImageCodec::kWebp ? "WebP image" : "BMP image",
                   "Lockstep reads masks from PNG only");
  const uint8_t bits = bytes[kPngBitsAt];  // read_image_info() has seen the whole header
  const uint8_t colour = bytes[kPngBitsAt + 1];
  if (colour == 2 || colour == 6)
    return no_mask("PNG image of colours", "a mask has one value a pixel");
  if (colour == 4) return no_mask("PNG image with opacity", "a mask has one value a pixel");
  if (bits > 8) return no_mask("PNG image of 16 bits", "the values of a mask are 0 to 255");
  info.channels = 1;
  return info;
}

bool begins_as_image(std::span<const uint8_t> bytes) {
  const bool is_jpeg =
      bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
  if (is_webp(bytes)) return true;
  if (begins(bytes, {"BM", 0})) return bmp_info(bytes).is_ok();
  return is_jpeg || (bytes.size() >= kPngSignature.size() &&
                     std::equal(kPngSignature.begin(), kPngSignature.end(), bytes.begin()));
}

bool has_image_ending(std::string_view name) {
  return ends_with_any(name, kReadEndings);
}

bool has_foreign_image_ending(std::string_view name) {
  return ends_with_any(name, kForeignEndings);
}

}  // namespace lockstep::data
