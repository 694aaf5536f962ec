#include "data/formats/arrays/field_values.h"

#include <cstring>
#include <limits>

#include "comm/base/check.h"
#include "data/base/file_errors.h"
#include "data/base/stored_floats.h"

namespace lockstep::data {
namespace {

template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_same_v<From, bool>)
    return value ? To{1} : To{0};
  else
    return static_cast<To>(value);
}

template <typename From, typename To>
void convert(const uint8_t* from, uint64_t count, std::byte* out) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(out, from, count * sizeof(To));
    return;
  }
  using Stored = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
  for (uint64_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
    const To value = converted<To>(static_cast<From>(stored));
    std::memcpy(out + i * sizeof value, &value, sizeof value);
  }
}

// Calls use(From()) with a value of the type that is stored, which is no float.
template <typename Use>
void with_type(char kind, uint32_t bytes, const Use& use) {
  if (kind == 'b') return use(bool());
  const bool is_signed = kind == 'i';
  if (bytes == 1) return is_signed ? use(int8_t()) : use(uint8_t());
  if (bytes == 2) return is_signed ? use(int16_t()) : use(uint16_t());
  if (bytes == 4) return is_signed ? use(int32_t()) : use(uint32_t());
  return is_signed ? use(int64_t()) : use(uint64_t());
}

// REQUIRES: the values are no floats.
void convert_to(FieldType type, const FieldValues& values, uint64_t count, const uint8_t* from,
                std::byte* out) {
  with_type(values.kind, values.element_bytes, [&]<typename From>(From) {
    if (type == FieldType::kF32) return convert<From, float>(from, count, out);
    if (type == FieldType::kI64) return convert<From, int64_t>(from, count, out);
    if constexpr (sizeof(From) == 1) return convert<From, uint8_t>(from, count, out);
    LOCKSTEP_CHECK(false, "a field of a type that holds its values");
  });
}

// uint64 beyond int64 became negative.
bool are_not_negative(const std::byte* numbers, uint64_t count) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits;
    std::memcpy(&bits, numbers + i * sizeof bits, sizeof bits);
    found |= bits;
  }
  return found >> 63 == 0;
}

bool is_uint64(const FieldValues& values) {
  return values.kind == 'u' && values.element_bytes == sizeof(uint64_t);
}

Status refused_value(const FieldValues& values, uint64_t i, const std::string& what) {
  return bad(values.name + " has " + what + " in sample " + std::to_string(i) +
             " (counted from 0); correct it, or leave the sample out");
}

}  // namespace

uint64_t FieldValues::elements() const {
  uint64_t n = 1;
  for (const uint64_t dim : dims) n *= dim;
  return n;
}

int64_t FieldValues::whole(uint64_t i) const {
  int64_t value = 0;
  convert_to(FieldType::kI64, *this, 1, first + i * stride_bytes,
             reinterpret_cast<std::byte*>(&value));
  return value < 0 && is_uint64(*this) ? std::numeric_limits<int64_t>::max() : value;
}

Status check_field_kind(const FieldValues& values) {
  const uint32_t bytes = values.element_bytes;
  const bool is_whole = (values.kind == 'u' || values.kind == 'i') &&
                        (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
  const bool is_real = values.is_float() && (bytes == 2 || bytes == 4 || bytes == 8);
  if (is_whole || is_real || (values.kind == 'b' && bytes == 1)) return Status::ok();
  return bad(values.name +
             " holds numbers of a type that no field has; write it again as uint8, int64 or "
             "float32");
}

Status copy_field(const FieldValues& values, const FieldSpec& spec, uint64_t i, std::byte* out) {
  const uint64_t count = spec.elements();
  const uint8_t* const from = values.first + i * values.stride_bytes;
  if (!values.is_float())
    convert_to(spec.type, values, count, from, out);
  else if (!copy_floats(from, values.element_bytes, count, out))
    return refused_value(values, i, "a value that is NaN, infinite or beyond float32");
  if (spec.type == FieldType::kI64 && is_uint64(values) && !are_not_negative(out, count))
    return refused_value(values, i, "a whole number beyond int64");
  if (spec.role == FieldRole::kWeight) {
    float weight = 0;
    std::memcpy(&weight, out, sizeof weight);
    if (weight < 0) return refused_value(values, i, "a weight below 0");
  }
  return Status::ok();
}

bool may_be_refused(const FieldValues& values, const FieldSpec& spec) {
  return values.is_float() || is_uint64(values) || spec.role == FieldRole::kWeight;
}

}  // namespace lockstep::data
