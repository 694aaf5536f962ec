#include "data/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "comm/base/target_clones.h"

namespace lockstep::data {
namespace {

constexpr int kBits = 22;  // fractional bits of a weight; leaves 8 for a byte and 2 for the sum
constexpr int32_t kHalf = 1 << (kBits - 1);
constexpr int32_t kMost = 255;  // weights are rounded, and may sum to a little more than one

double triangle(double x) {
  return std::max(0.0, 1.0 - std::abs(x));
}

// The four bytes of a pixel at once, by GCC's and Clang's vector extensions. Widening is written as
// two interleavings with zero: compilers turn each into one instruction, but
// __builtin_convertvector into a dozen.
using Bytes = uint8_t __attribute__((vector_size(16)));
using Words = uint16_t __attribute__((vector_size(16)));
using Sums = int32_t __attribute__((vector_size(16)));

inline Sums pixel_at(const uint8_t* p) {
  uint32_t pixel;
  std::memcpy(&pixel, p, sizeof pixel);
  const Bytes bytes = reinterpret_cast<Bytes>(Sums{static_cast<int32_t>(pixel), 0, 0, 0});
  const Words words = reinterpret_cast<Words>(__builtin_shufflevector(
      bytes, Bytes{}, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  return reinterpret_cast<Sums>(__builtin_shufflevector(words, Words{}, 0, 8, 1, 9, 2, 10, 3, 11));
}

// Each of them 0 to 255.
inline void put_pixel(Sums sums, uint8_t* out) {
  const Bytes bytes = reinterpret_cast<Bytes>(sums);
  const Sums packed = reinterpret_cast<Sums>(
      __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12));
  const int32_t pixel = packed[0];
  std::memcpy(out, &pixel, sizeof pixel);
}

LOCKSTEP_CLONES void scale_row4(const uint8_t* in, const AxisWeights& weights, uint8_t* out) {
  const size_t n = weights.taps.size();
  const AxisWeights::Taps* taps = weights.taps.data();
  const int32_t* w = weights.weights.data();
  for (size_t i = 0; i < n; ++i, w += weights.most, out += 4) {
    const uint8_t* p = in + size_t{4} * taps[i].first;
    const uint32_t count = taps[i].count;
    Sums sum = {kHalf, kHalf, kHalf, kHalf};
    for (uint32_t t = 0; t < count; ++t) sum += pixel_at(p + size_t{4} * t) * w[t];
    sum >>= kBits;
    put_pixel(sum < kMost ? sum : Sums{} + kMost, out);
  }
}

LOCKSTEP_CLONES void scale_row1(const uint8_t* in, const AxisWeights& weights, uint8_t* out) {
  for (size_t i = 0; i < weights.taps.size(); ++i) {
    const uint8_t* p = in + weights.taps[i].first;
    const int32_t* w = &weights.weights[i * weights.most];
    int32_t sum = kHalf;
    for (uint32_t t = 0; t < weights.taps[i].count; ++t) sum += p[t] * w[t];
    out[i] = static_cast<uint8_t>(std::min(sum >> kBits, kMost));
  }
}

// One row of the result, from rows `stride` bytes apart, a block after another that stays in
// registers and the first cache.
LOCKSTEP_CLONES void add_rows(const uint8_t* in, size_t stride, const int32_t* weights,
                              uint32_t count, size_t bytes, uint8_t* out) {
  constexpr size_t kBlock = 256;
  int32_t sum[kBlock];
  for (size_t begin = 0; begin < bytes; begin += kBlock) {
    const size_t n = std::min(kBlock, bytes - begin);
    for (size_t i = 0; i < n; ++i) sum[i] = kHalf;
    for (uint32_t t = 0; t < count; ++t) {
      const uint8_t* row = in + t * stride + begin;
      const int32_t weight = weights[t];
      for (size_t i = 0; i < n; ++i) sum[i] += row[i] * weight;
    }
    for (size_t i = 0; i < n; ++i)
      out[begin + i] = static_cast<uint8_t>(std::min(sum[i] >> kBits, kMost));
  }
}

LOCKSTEP_CLONES void to_planes(const uint8_t* in, size_t pixels, size_t plane, uint8_t* out) {
  uint8_t* red = out;
  uint8_t* green = out + plane;
  uint8_t* blue = green + plane;
  for (size_t i = 0; i < pixels; ++i) {
    red[i] = in[4 * i];
    green[i] = in[4 * i + 1];
    blue[i] = in[4 * i + 2];
  }
}

}  // namespace

void make_weights(const AxisSpec& axis, uint32_t source_pixels, AxisWeights& out) {
  const double scale = axis.length / axis.scaled;
  const double width = std::max(scale, 1.0);  // of half the triangle
  // Stops at whole pixels around the box: beyond them is another picture.
  const double pixels = source_pixels;
  const double least = std::clamp(std::floor(axis.begin), 0.0, pixels);
  const double most = std::min(pixels, std::ceil(axis.begin + axis.length));
  out.most = static_cast<uint32_t>(std::ceil(width)) * 2 + 1;
  out.taps.resize(axis.count);
  out.weights.assign(size_t{out.most} * axis.count, 0);
  std::vector<double> exact(out.most);
  for (uint32_t i = 0; i < axis.count; ++i) {
    const double middle = axis.begin + (axis.first + i + 0.5) * scale;
    const double first = std::clamp(std::floor(middle - width + 0.5), least, std::max(least, most));
    const double end = std::min(std::floor(middle + width + 0.5), most);
    const auto count = static_cast<uint32_t>(std::max(end - first, 0.0));
    double sum = 0;
    for (uint32_t t = 0; t < count; ++t) {
      exact[t] = triangle((t + first - middle + 0.5) * (1.0 / width));
      sum += exact[t];
    }
    out.taps[i] = {static_cast<uint32_t>(first), count};
    for (uint32_t t = 0; t < count; ++t)
      // Rounds well, because weights are not negative.
      out.weights[size_t{out.most} * i + t] = static_cast<int32_t>(
          0.5 + exact[t] / sum * (1 << kBits));  // NOLINT(bugprone-incorrect-roundings)
  }
}

void resample(const DecodedPart& source, const AxisSpec& x, const AxisSpec& y,
              ResampleScratch& scratch, uint8_t* out) {
  make_weights(x, source.box.width, scratch.columns);
  make_weights(y, source.box.height, scratch.rows);
  const uint32_t bytes = source.pixel_bytes;
  const size_t source_row = size_t{source.box.width} * bytes;
  const size_t narrow_row = size_t{x.count} * bytes;
  const uint32_t top = scratch.rows.taps.front().first;
  const uint32_t bottom = scratch.rows.taps.back().first + scratch.rows.taps.back().count;
  scratch.narrow.resize(narrow_row * (bottom - top + 1));
  for (uint32_t row = top; row < bottom; ++row) {
    const auto scale_row = bytes == 1 ? scale_row1 : scale_row4;
    scale_row(source.bytes.data() + row * source_row, scratch.columns,
              scratch.narrow.data() + (row - top) * narrow_row);
  }
  uint8_t* mixed = scratch.narrow.data() + narrow_row * (bottom - top);
  for (uint32_t i = 0; i < y.count; ++i, out += x.count) {
    const AxisWeights::Taps& taps = scratch.rows.taps[i];
    const uint8_t* rows = scratch.narrow.data() + (taps.first - top) * narrow_row;
    const int32_t* weights = &scratch.rows.weights[size_t{i} * scratch.rows.most];
    add_rows(rows, narrow_row, weights, taps.count, narrow_row, bytes == 1 ? out : mixed);
    if (bytes == 4) to_planes(mixed, x.count, size_t{x.count} * y.count, out);
  }
}

}  // namespace lockstep::data
