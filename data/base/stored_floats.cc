#include "data/base/stored_floats.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace lockstep::data {
namespace {

struct Float16 {
  uint16_t bits;
};

float to_float(double value) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  return std::fabs(value) <= double{kLargest} ? static_cast<float>(value)
                                              : std::numeric_limits<float>::infinity();
}

float to_float(Float16 half) {
  const uint32_t sign = uint32_t{half.bits & 0x8000U} << 16;
  const uint32_t exponent = (half.bits >> 10) & 0x1fU;
  const uint32_t fraction = half.bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  // Numbers below 2^-14 have no leading one.
  const float number = exponent == 0
                           ? std::ldexp(static_cast<float>(fraction), -24)
                           : std::bit_cast<float>((exponent + 112) << 23 | fraction << 13);
  return sign == 0 ? number : -number;
}

template <typename From>
void convert_floats(const uint8_t* stored, uint64_t count, std::byte* out) {
  for (uint64_t i = 0; i < count; ++i) {
    From from;
    std::memcpy(&from, stored + i * sizeof from, sizeof from);
    const float value = to_float(from);
    std::memcpy(out + i * sizeof value, &value, sizeof value);
  }
}

bool are_finite(const std::byte* floats, uint64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones: infinite or NaN
  uint32_t found = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, floats + i * sizeof bits, sizeof bits);
    found |= static_cast<uint32_t>((bits & kExponent) == kExponent);
  }
  return found == 0;
}

}  // namespace

bool copy_floats(const uint8_t* stored, uint32_t bytes, uint64_t count, std::byte* out) {
  if (bytes == sizeof(float))
    std::memcpy(out, stored, count * sizeof(float));
  else if (bytes == sizeof(double))
    convert_floats<double>(stored, count, out);
  else
    convert_floats<Float16>(stored, count, out);
  return are_finite(out, count);
}

}  // namespace lockstep::data
