// Any bytes as a JPEG, PNG or raw image: refused, or decoded into exactly the given memory, and
// twice with the same result.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "data/image/image_decoder.h"
#include "data/image/raw_image.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kPixels = 200'000;  // larger ones take the time of many small ones

void try_frame(std::span<const uint8_t> file, const WantedImage& wanted,
               std::optional<uint64_t> stream) {
  ImageDecoder decoder;
  std::vector<uint8_t> first(uint64_t{wanted.width} * wanted.height * wanted.channels);
  std::vector<uint8_t> second(first.size());
  const Status status = decoder.decode(file, wanted, stream, first.data());
  LOCKSTEP_CHECK(status.is_ok() || status.code() == Code::kBadData, "damage is bad data");
  const Status again = decoder.decode(file, wanted, stream, second.data());
  LOCKSTEP_CHECK(again.is_ok() == status.is_ok(), "the same file is good or bad");
  LOCKSTEP_CHECK(!status.is_ok() || first == second, "the same file is the same image");
}

// Tries the same as a mask.
void try_mask(std::span<const uint8_t> file, const WantedImage& wanted,
              std::optional<uint64_t> stream) {
  ImageDecoder decoder;
  std::vector<uint8_t> first(uint64_t{wanted.width} * wanted.height);
  std::vector<uint8_t> second(first.size());
  const Status status = decoder.decode_mask(file, wanted, stream, first.data());
  LOCKSTEP_CHECK(status.is_ok() || status.code() == Code::kBadData, "damage is bad data");
  const Status again = decoder.decode_mask(file, wanted, stream, second.data());
  LOCKSTEP_CHECK(again.is_ok() == status.is_ok(), "the same file is good or bad");
  LOCKSTEP_CHECK(!status.is_ok() || first == second, "the same file is the same mask");
}

void try_file(std::span<const uint8_t> file) {
  const auto info = is_raw_image(file) ? raw_image_info(file) : read_image_info(file);
  if (!info.is_ok()) {
    LOCKSTEP_CHECK(info.status().code() == Code::kBadData, "damage is bad data");
    return;
  }
  LOCKSTEP_CHECK(info->width > 0 && info->width <= limits::kImageSide && info->height > 0 &&
                     info->height <= limits::kImageSide &&
                     uint64_t{info->width} * info->height <= limits::kImagePixels,
                 "an image has a size within the limits");
  if (uint64_t{info->width} * info->height > kPixels) return;
  try_frame(file, {{}, info->width, info->height, info->channels}, {});
  try_frame(file, {{CropKind::kCenter, 16, 20}, 16, 16, 3}, {});
  try_frame(file, {{CropKind::kRandomResized, 24, 0}, 24, 24, 1}, file.size());
  try_mask(file, {{}, info->width, info->height, info->channels}, {});
  try_mask(file, {{CropKind::kRandomResized, 24, 0}, 24, 24, 3}, file.size());
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::data::try_file({data, size});
  return 0;
}
