// The 8-bit floats of train.precision fp8, and the cast of a tensor of bf16 to them.
//
// A tensor has one scale, a power of two: the largest with which no value exceeds the type. So the
// scale follows from the exponent of the largest magnitude, the product with the scale is exact,
// and the largest magnitude does not depend on the order in which values are seen. All of it is
// integer arithmetic, except one exact float addition: every processor gives the same bits.
//
//   x (rows, columns) ─ largest magnitude ─▶ scale ─ tiles of 32 x 32 ─▶ plain (padded_rows,
//   columns)
//                                                                     └▶ transposed (columns,
//                                                                     padded_rows)
//
// A value above the largest of the type saturates. NaN stays NaN. If x holds a NaN or an infinite
// value, the scale is NaN, and so is every value of the result: the loss shows it.
//
// Thread-safety: pure functions; tiles are independent.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "worker/cuda/kernels/bf16.h"
#include "worker/cuda/kernels/groups.h"
#include "worker/cuda/kernels/team.h"

namespace lockstep::cuda {

// Part of the fingerprint of fp8 runs. Changes with the arithmetic of this file, or with the parts
// of a layer that are computed in fp8 (torch/model/fp8_linear.h).
inline constexpr char kFp8Recipe[] = "tensor-pow2-1";

// The largest value of both types is 1.75 * 2^kLargestExponent.
struct E4M3 {
  static constexpr uint32_t kMantissa = 3;  // bits
  static constexpr uint32_t kBias = 7;
  static constexpr uint32_t kLargest = 0x7e;  // 448; 0x7f is NaN, and there is no infinity
  static constexpr int kLargestExponent = 8;
};
struct E5M2 {
  static constexpr uint32_t kMantissa = 2;
  static constexpr uint32_t kBias = 15;
  static constexpr uint32_t kLargest = 0x7b;  // 57,344; 0x7c is infinity
  static constexpr int kLargestExponent = 15;
};

inline constexpr uint32_t kFloatInfinity = 0x7f800000;
inline constexpr uint32_t kFloatNan = 0x7fc00000;
inline constexpr uint32_t kFloatMantissa = 23;  // bits
inline constexpr uint32_t kFloatBias = 127;
inline constexpr uint32_t kThreeQuarters = 0x600000;  // mantissa of 1.75
inline constexpr uint32_t kFp8Nan = 0x7f;             // of both types

// Rounds to the nearest, ties to even, and saturates.
template <typename F>
LOCKSTEP_HOST_DEVICE uint8_t fp8_bits(float x) {
  constexpr uint32_t kDropped = kFloatMantissa - F::kMantissa;
  constexpr uint32_t kLargest =
      (kFloatBias + F::kLargestExponent) << kFloatMantissa | kThreeQuarters;
  constexpr uint32_t kLeastNormal = (kFloatBias + 1 - F::kBias) << kFloatMantissa;
  // The last bit of this float is the least denormal of F, so that adding the two rounds to it.
  constexpr uint32_t kRounder = (kFloatBias + kFloatMantissa + 1 - F::kBias - F::kMantissa)
                                << kFloatMantissa;
  const uint32_t bits = float_bits(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t rounded;
  if (magnitude < kLeastNormal) {
    rounded = float_bits(float_of_bits(magnitude) + float_of_bits(kRounder)) - kRounder;
  } else {
    const uint32_t rebased = magnitude - ((kFloatBias - F::kBias) << kFloatMantissa);
    rounded = (rebased + (1u << (kDropped - 1)) - 1 + (rebased >> kDropped & 1u)) >> kDropped;
  }
  if (magnitude >= kLargest) rounded = F::kLargest;
  if (magnitude > kFloatInfinity) rounded = kFp8Nan;
  return static_cast<uint8_t>((bits >> 24 & 0x80u) | rounded);
}

template <typename F>
LOCKSTEP_HOST_DEVICE float float_of_fp8(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t magnitude = bits & 0x7fu;
  if (magnitude > F::kLargest) {
    const bool is_infinite = magnitude == F::kLargest + 1 && magnitude != kFp8Nan;
    return float_of_bits(sign | (is_infinite ? kFloatInfinity : kFloatNan));
  }
  // Subtracting the exponent's offset as a power of two also takes the denormals right.
  const uint32_t widened = magnitude << (kFloatMantissa - F::kMantissa);
  const float rescaled =
      float_of_bits(widened) * float_of_bits((2 * kFloatBias - F::kBias) << kFloatMantissa);
  return float_of_bits(sign | float_bits(rescaled));
}

// |x| as the bits of a float. The bits have the order of the numbers; infinity is above all
// numbers, and NaN above infinity.
LOCKSTEP_HOST_DEVICE uint32_t magnitude_bits(Bf16 x) {
  return static_cast<uint32_t>(x.bits & 0x7fffu) << 16;
}

LOCKSTEP_HOST_DEVICE uint32_t larger(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

LOCKSTEP_HOST_DEVICE uint32_t largest_of(const Group<Bf16>& group) {
  uint32_t largest = 0;
  for (const uint32_t pair : group.words)
    largest = larger(largest, larger(pair << 16 & 0x7fff0000u, pair & 0x7fff0000u));
  return largest;
}

// The scale of a tensor whose largest magnitude has these bits. 1 if all of it is zero. Scales end
// at 2^126, so that the inverse is a normal number, too.
template <typename F>
LOCKSTEP_HOST_DEVICE float fp8_scale(uint32_t largest) {
  if (largest == 0) return 1;
  if (largest >= kFloatInfinity) return float_of_bits(kFloatNan);
  constexpr int kMostExponent = 126;
  const int above = (largest & 0x7fffffu) > kThreeQuarters ? 1 : 0;
  const int exponent = F::kLargestExponent + static_cast<int>(kFloatBias) -
                       static_cast<int>(largest >> kFloatMantissa) - above;
  const int bounded = exponent < kMostExponent ? exponent : kMostExponent;
  return float_of_bits(static_cast<uint32_t>(bounded + static_cast<int>(kFloatBias))
                       << kFloatMantissa);
}

// Matrix products in fp8 take rows and columns in multiples of this.
inline constexpr uint32_t kFp8Multiple = 16;

// One tensor. Rows from `rows` to `padded_rows` are zeros.
// REQUIRES: columns and padded_rows are multiples of kFp8Multiple; x lies at a multiple of 16
// bytes.
struct Fp8Cast {
  const Bf16* x = nullptr;
  uint32_t rows = 0;
  uint32_t columns = 0;
  uint32_t padded_rows = 0;
  bool is_gradient = false;        // E5M2, else E4M3
  uint32_t* largest = nullptr;     // one word to work with
  float* inverse_scale = nullptr;  // one: the factor that undoes the scale
  uint8_t* plain = nullptr;
  uint8_t* transposed = nullptr;
};

LOCKSTEP_HOST_DEVICE uint64_t cast_groups(const Fp8Cast& work) {
  return uint64_t{work.rows} * work.columns / kGroup<Bf16>;
}

inline constexpr uint32_t kCastTile = 32;

// Rows of tiles come one after another.
LOCKSTEP_HOST_DEVICE uint32_t cast_tiles_across(const Fp8Cast& work) {
  return (work.columns + kCastTile - 1) / kCastTile;
}
LOCKSTEP_HOST_DEVICE uint64_t cast_tiles(const Fp8Cast& work) {
  return uint64_t{cast_tiles_across(work)} * ((work.padded_rows + kCastTile - 1) / kCastTile);
}

// By row and column of x. The odd width keeps the lanes that read a column in different banks.
struct CastTile {
  uint8_t of[kCastTile][kCastTile + 1];
};

// The two halves of one tile. All lanes have ended the first before any begins the second.
template <typename F, typename Team>
LOCKSTEP_TEAM_CODE void cast_plain_tile(const Team& team, const Fp8Cast& work, float scale,
                                        uint64_t index, CastTile& tile) {
  const uint64_t top = index / cast_tiles_across(work) * kCastTile;
  const uint32_t left = static_cast<uint32_t>(index % cast_tiles_across(work)) * kCastTile;
  team.lane_loop(kCastTile * kCastTile, [&](uint32_t i) {
    const uint32_t r = i / kCastTile, c = i % kCastTile;
    if (top + r >= work.padded_rows || left + c >= work.columns) return;
    const uint64_t at = (top + r) * work.columns + left + c;
    const uint8_t bits =
        top + r < work.rows ? fp8_bits<F>(to_float(work.x[at]) * scale) : uint8_t{0};
    work.plain[at] = bits;
    tile.of[r][c] = bits;
  });
}
template <typename Team>
LOCKSTEP_TEAM_CODE void cast_transposed_tile(const Team& team, const Fp8Cast& work, uint64_t index,
                                             const CastTile& tile) {
  const uint64_t top = index / cast_tiles_across(work) * kCastTile;
  const uint32_t left = static_cast<uint32_t>(index % cast_tiles_across(work)) * kCastTile;
  team.lane_loop(kCastTile * kCastTile, [&](uint32_t i) {
    const uint32_t c = i / kCastTile, r = i % kCastTile;
    if (top + r >= work.padded_rows || left + c >= work.columns) return;
    work.transposed[uint64_t{left + c} * work.padded_rows + top + r] = tile.of[r][c];
  });
}

}  // namespace lockstep::cuda
