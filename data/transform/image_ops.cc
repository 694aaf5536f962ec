#include "data/transform/image_ops.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace lockstep::data {
namespace {

constexpr int64_t kOne = 1 << 16;  // of fixed-point coordinates

uint8_t bounded(float value) {
  if (!(value > 0)) return 0;
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): it is positive here
  return value >= 255 ? 255 : static_cast<uint8_t>(value + 0.5F);
}

// middle + factor * (x - middle) for every x.
std::array<uint8_t, 256> stretched(float middle, float factor) {
  std::array<uint8_t, 256> table;
  for (size_t x = 0; x < table.size(); ++x)
    table[x] = bounded(middle + factor * (static_cast<float>(x) - middle));
  return table;
}

void look_up(const ImageBytes& image, const std::array<uint8_t, 256>& table) {
  const uint64_t bytes = image.channels * image.plane();
  for (uint64_t i = 0; i < bytes; ++i) image.data[i] = table[image.data[i]];
}

uint32_t grey(const ImageBytes& image, uint64_t pixel) {
  const uint64_t plane = image.plane();
  const uint8_t* p = image.data + pixel;
  if (image.channels == 3)  // the weights times 2^16, which sum to 2^16
    return (19'595U * p[0] + 38'470U * p[plane] + 7'471U * p[2 * plane] + 32'768U) >> 16;
  uint64_t sum = 0;
  for (uint32_t c = 0; c < image.channels; ++c) sum += p[c * plane];
  return static_cast<uint32_t>((sum + image.channels / 2) / image.channels);
}

// A colour in HSV, but in whole numbers: the place of its hue on the circle is counted in sixths
// from red on, times `chroma`, so that nothing is rounded.
struct Hue {
  int32_t most;    // the largest channel
  int32_t chroma;  // by which the smallest is less
  int32_t place;   // -chroma to 5 chroma
};

Hue hue_of(int32_t red, int32_t green, int32_t blue) {
  const int32_t most = std::max({red, green, blue});
  const int32_t chroma = most - std::min({red, green, blue});
  if (most == red) return {most, chroma, green - blue};
  if (most == green) return {most, chroma, 2 * chroma + blue - red};
  return {most, chroma, 4 * chroma + red - green};
}

// The largest, the middle and the smallest channel in each sixth of the circle.
struct Sixth {
  uint8_t most;
  uint8_t between;
  uint8_t least;
};

constexpr Sixth kSixths[] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0}, {2, 1, 0}, {2, 0, 1}, {0, 2, 1}};

// Black outside.
uint32_t pixel_at(const uint8_t* plane, const ImageBytes& image, int64_t y, int64_t x) {
  if (y < 0 || x < 0 || y >= image.height || x >= image.width) return 0;
  return plane[static_cast<uint64_t>(y) * image.width + static_cast<uint64_t>(x)];
}

// Coordinates times 2^16.
uint8_t between(const uint8_t* plane, const ImageBytes& image, int64_t y, int64_t x) {
  const int64_t row = y >> 16;
  const int64_t column = x >> 16;
  const auto down = static_cast<uint32_t>((y & (kOne - 1)) >> 8);  // of 256
  const auto right = static_cast<uint32_t>((x & (kOne - 1)) >> 8);
  const uint32_t above = pixel_at(plane, image, row, column) * (256 - right) +
                         pixel_at(plane, image, row, column + 1) * right;
  const uint32_t below = pixel_at(plane, image, row + 1, column) * (256 - right) +
                         pixel_at(plane, image, row + 1, column + 1) * right;
  return static_cast<uint8_t>((above * (256 - down) + below * down + 32'768U) >> 16);
}

// of_place(place, y, x): for every pixel of a rotated image, where it comes from, times 2^16.
template <typename OfPlace>
void for_every_source(const ImageBytes& in, int64_t cosine, int64_t sine, const OfPlace& of_place) {
  const int64_t height = in.height;
  const int64_t width = in.width;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      // From the middle, in half pixels, so that it is whole for even sizes, too.
      const int64_t v = 2 * y - (height - 1);
      const int64_t u = 2 * x - (width - 1);
      const int64_t from_x = (cosine * u - sine * v + (width - 1) * kOne) >> 1;
      const int64_t from_y = (sine * u + cosine * v + (height - 1) * kOne) >> 1;
      of_place(static_cast<uint64_t>(y * width + x), from_y, from_x);
    }
  }
}

}  // namespace

void copy_channels_first(const uint8_t* stored, const ImageBytes& out) {
  uint8_t* to = out.data;
  const uint64_t plane = out.plane();
  for (uint32_t c = 0; c < out.channels; ++c)
    for (uint64_t i = 0; i < plane; ++i) *to++ = stored[i * out.channels + c];
}

void mirror(const ImageBytes& image) {
  const uint64_t rows = uint64_t{image.channels} * image.height;
  for (uint64_t row = 0; row < rows; ++row)
    std::reverse(image.data + row * image.width, image.data + (row + 1) * image.width);
}

void mirror_vertically(const ImageBytes& image) {
  for (uint32_t c = 0; c < image.channels; ++c) {
    uint8_t* plane = image.data + c * image.plane();
    for (uint64_t y = 0; y < image.height / 2; ++y)
      std::swap_ranges(plane + y * image.width, plane + (y + 1) * image.width,
                       plane + (image.height - 1 - y) * image.width);
  }
}

void shift(const ImageBytes& in, int64_t dy, int64_t dx, const ImageBytes& out) {
  const int64_t height = in.height;
  const int64_t width = in.width;
  const int64_t begin = std::clamp<int64_t>(-dx, 0, width);  // of the pixels from inside the image
  const int64_t end = std::clamp<int64_t>(width - dx, begin, width);
  for (uint32_t c = 0; c < in.channels; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      const uint64_t row = c * in.plane() + static_cast<uint64_t>(y * width);
      uint8_t* to = out.data + row;
      std::memset(to, 0, static_cast<size_t>(width));
      if (y + dy < 0 || y + dy >= height || begin == end) continue;
      const uint8_t* from =
          in.data + c * in.plane() + static_cast<uint64_t>((y + dy) * width + begin + dx);
      std::memcpy(to + begin, from, static_cast<size_t>(end - begin));
    }
  }
}

void rotate(const ImageBytes& in, int64_t cosine, int64_t sine, const ImageBytes& out) {
  for_every_source(in, cosine, sine, [&](uint64_t place, int64_t from_y, int64_t from_x) {
    for (uint32_t c = 0; c < in.channels; ++c)
      out.data[c * in.plane() + place] = between(in.data + c * in.plane(), in, from_y, from_x);
  });
}

void rotate_nearest(const ImageBytes& in, int64_t cosine, int64_t sine, const ImageBytes& out) {
  for_every_source(in, cosine, sine, [&](uint64_t place, int64_t from_y, int64_t from_x) {
    const int64_t y = (from_y + kOne / 2) >> 16;
    const int64_t x = (from_x + kOne / 2) >> 16;
    for (uint32_t c = 0; c < in.channels; ++c)
      out.data[c * in.plane() + place] =
          static_cast<uint8_t>(pixel_at(in.data + c * in.plane(), in, y, x));
  });
}

void scale_brightness(const ImageBytes& image, float factor) {
  look_up(image, stretched(0, factor));
}

void scale_contrast(const ImageBytes& image, float factor) {
  const uint64_t plane = image.plane();
  uint64_t sum = 0;
  for (uint64_t i = 0; i < plane; ++i) sum += grey(image, i);
  // NOLINTNEXTLINE(bugprone-integer-division): the mean is a whole number
  look_up(image, stretched(static_cast<float>((sum + plane / 2) / plane), factor));
}

void scale_saturation(const ImageBytes& image, float factor) {
  const uint64_t plane = image.plane();
  for (uint64_t i = 0; i < plane; ++i) {
    const auto middle = static_cast<float>(grey(image, i));
    for (uint32_t c = 0; c < image.channels; ++c) {
      uint8_t& value = image.data[c * plane + i];
      value = bounded(middle + factor * (static_cast<float>(value) - middle));
    }
  }
}

void turn_hue(const ImageBytes& image, int64_t turn) {
  const uint64_t plane = image.plane();
  for (uint64_t i = 0; i < plane; ++i) {
    uint8_t* pixel = image.data + i;
    const Hue hue = hue_of(pixel[0], pixel[plane], pixel[2 * plane]);
    if (hue.chroma == 0) continue;  // grey has none
    const int64_t sixth = hue.chroma * kOne;
    int64_t place = hue.place * kOne + turn * hue.chroma;
    if (place < 0) place += 6 * sixth;
    if (place >= 6 * sixth) place -= 6 * sixth;
    const int64_t which = place / sixth;
    const int64_t way = place - which * sixth;
    const int64_t from_least = which % 2 == 0 ? way : sixth - way;  // it rises or falls
    const int32_t least = hue.most - hue.chroma;
    const Sixth& channels = kSixths[which];
    pixel[channels.most * plane] = static_cast<uint8_t>(hue.most);
    pixel[channels.between * plane] = static_cast<uint8_t>(least + ((from_least + kOne / 2) >> 16));
    pixel[channels.least * plane] = static_cast<uint8_t>(least);
  }
}

void fill_square(const ImageBytes& image, int64_t y, int64_t x, int64_t side,
                 std::span<const uint8_t> values) {
  const int64_t top = std::clamp<int64_t>(y, 0, image.height);
  const int64_t bottom = std::clamp<int64_t>(y + side, 0, image.height);
  const int64_t left = std::clamp<int64_t>(x, 0, image.width);
  const int64_t right = std::clamp<int64_t>(x + side, 0, image.width);
  for (uint32_t c = 0; c < image.channels; ++c)
    for (int64_t row = top; row < bottom; ++row)
      std::memset(image.data + c * image.plane() + static_cast<uint64_t>(row * image.width + left),
                  values[c], static_cast<size_t>(right - left));
}

}  // namespace lockstep::data
