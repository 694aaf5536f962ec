#include "data/image/frame.h"

#include <algorithm>
#include <cmath>

#include "comm/base/chance.h"

namespace lockstep::data {
namespace {

// Part of the random streams, as the numbers of AugmentKind are.
constexpr uint64_t kPlaceStream = 1'001;
constexpr uint64_t kResizedStream = 1'002;

constexpr int kAttempts = 10;  // at a box that lies within the image
constexpr double kLeastArea = 0.08;
constexpr double kLeastRatio = 3.0 / 4.0;
constexpr double kMostRatio = 4.0 / 3.0;

// Rounds to 16 fractional bits: libraries differ in the last ones.
double rounded_exp(double x) {
  return std::round(std::exp(x) * 65'536) / 65'536;
}

uint32_t place(uint64_t key, uint64_t i, uint32_t places) {
  return static_cast<uint32_t>(below(key, i, places));
}

// `wide` and `high`: by how much the image exceeds the window.
void mirror_window(const ImageFrame& frame, uint32_t wide, uint32_t high, uint64_t stream,
                   PixelBox& window) {
  if (is_flipped(Flip::kLeftToRight, frame.flip, stream)) window.x = wide - window.x;
  if (is_flipped(Flip::kTopToBottom, frame.flip_vertical, stream)) window.y = high - window.y;
}

FrameCut whole_window(const PixelBox& box, uint32_t size) {
  return {box, size, size, {0, 0, size, size}};
}

// The largest box in the middle whose sides are not further apart than allowed.
PixelBox middle(uint32_t width, uint32_t height) {
  const double ratio = static_cast<double>(width) / height;
  uint32_t w = width;
  uint32_t h = height;
  if (ratio < kLeastRatio) h = std::min(h, static_cast<uint32_t>(std::lround(w / kLeastRatio)));
  if (ratio > kMostRatio) w = std::min(w, static_cast<uint32_t>(std::lround(h * kMostRatio)));
  return {(width - w) / 2, (height - h) / 2, w, h};
}

PixelBox random_box(uint32_t width, uint32_t height, uint64_t key) {
  const double area = static_cast<double>(width) * height;
  const double lowest = std::log(kLeastRatio);
  const double span = std::log(kMostRatio) - lowest;
  for (uint64_t i = 0; i < uint64_t{4} * kAttempts; i += 4) {
    const double wanted = area * (kLeastArea + (1 - kLeastArea) * unit(key, i));
    const double ratio = rounded_exp(lowest + span * unit(key, i + 1));
    const double w = std::round(std::sqrt(wanted * ratio));
    const double h = std::round(std::sqrt(wanted / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const auto box_w = static_cast<uint32_t>(w);
    const auto box_h = static_cast<uint32_t>(h);
    return {place(key, i + 2, width - box_w + 1), place(key, i + 3, height - box_h + 1), box_w,
            box_h};
  }
  return middle(width, height);
}

// The image scaled to this length of its shorter side, in whole pixels.
FrameCut scaled_whole(uint32_t width, uint32_t height, uint32_t shorter) {
  FrameCut cut{{0, 0, width, height}, shorter, shorter, {}};
  if (width < height)
    cut.height = static_cast<uint32_t>(uint64_t{shorter} * height / width);
  else
    cut.width = static_cast<uint32_t>(uint64_t{shorter} * width / height);
  return cut;
}

uint32_t shorter_side(const ImageFrame& frame, uint32_t width, uint32_t height) {
  if (const uint32_t side = evaluation_side(frame); side > 0) return side;
  return std::max(std::min(width, height), frame.size);
}

// Half, rounded to even, as Python's round() does.
uint32_t half(uint32_t left_over) {
  const uint32_t down = left_over / 2;
  return left_over % 2 == 1 && down % 2 == 1 ? down + 1 : down;
}

}  // namespace

bool is_flipped(Flip flip, double probability, uint64_t stream) {
  return unit(stream_key({stream, static_cast<uint64_t>(flip)}), 0) < probability;
}

std::string to_text(const ImageFrame& frame) {
  if (frame.is_empty()) return {};
  return std::to_string(static_cast<int>(frame.crop)) + "-" + std::to_string(frame.size) + "-" +
         std::to_string(frame.resize);
}

FrameCut cut_of(const ImageFrame& frame, uint32_t width, uint32_t height,
                std::optional<uint64_t> stream) {
  if (frame.crop == CropKind::kRandomResized && stream)
    return whole_window(random_box(width, height, stream_key({*stream, kResizedStream})),
                        frame.size);
  FrameCut cut = scaled_whole(width, height, shorter_side(frame, width, height));
  const uint32_t wide = cut.width - frame.size;
  const uint32_t high = cut.height - frame.size;
  cut.window = {half(wide), half(high), frame.size, frame.size};
  if (frame.crop == CropKind::kRandom && stream) {
    const uint64_t key = stream_key({*stream, kPlaceStream});
    cut.window.x = place(key, 0, wide + 1);
    cut.window.y = place(key, 1, high + 1);
  }
  if (stream) mirror_window(frame, wide, high, *stream, cut.window);
  return cut;
}

}  // namespace lockstep::data
