#include "worker/script/short_floats.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace lockstep {
namespace {

float from_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

// IEEE 754 binary16: 1 sign, 5 exponent, 10 mantissa.
float from_fp16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float small = std::ldexp(static_cast<float>(mantissa), -24);
    return sign == 0 ? small : -small;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

template <typename Number, typename Convert>
void widen(const void* data, uint64_t elements, Into how, float* out, Convert convert) {
  const auto* in = static_cast<const Number*>(data);
  if (how == Into::kReplace) {
    for (uint64_t i = 0; i < elements; ++i) out[i] = convert(in[i]);
  } else {
    for (uint64_t i = 0; i < elements; ++i) out[i] += convert(in[i]);
  }
}

}  // namespace

Status widen_floats(const void* data, DType dtype, uint64_t elements, Into how, float* out) {
  switch (dtype) {
    case DType::kF32:
      if (how == Into::kReplace) {
        std::memcpy(out, data, elements * sizeof(float));
      } else {
        widen<float>(data, elements, how, out, [](float x) { return x; });
      }
      return Status::ok();
    case DType::kBF16:
      widen<uint16_t>(data, elements, how, out, from_bf16);
      return Status::ok();
    case DType::kF16:
      widen<uint16_t>(data, elements, how, out, from_fp16);
      return Status::ok();
    default:
      return {Code::kUsage, std::string("a gradient of ") + dtype_safetensors_name(dtype) +
                                ", but only float32, bfloat16 and float16 are summed; train the "
                                "parameter in one of these"};
  }
}

}  // namespace lockstep
