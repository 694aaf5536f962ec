// The values of one field in one file: samples at equal distances, each with numbers of any width.
// Copying a sample converts the numbers to the type of the field:
//
//   stored                                   the field is
//   uint8, bool                              uint8, int64 or float32
//   int8, int16, int32, int64, uint16 …      int64 or float32
//   float16, float32, float64                float32
//
// Thread-safety: values over memory that may change. If it changes, the values read are wrong, but
// every read stays within the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/fields.h"

namespace lockstep::data {

struct FieldValues {
  std::string name;            // of the array or column with its file, for messages
  char kind = 0;               // 'u', 'i', 'f' or 'b', as in NumPy's descr
  uint32_t element_bytes = 0;  // little-endian, at any address
  std::vector<uint64_t> dims;  // of one sample
  const uint8_t* first = nullptr;
  uint64_t stride_bytes = 0;  // from one sample to the next

  bool is_float() const { return kind == 'f'; }
  uint64_t elements() const;  // REQUIRES: the samples lie in memory
  // The whole number of sample i; the largest int64 for numbers beyond. REQUIRES: !is_float(); one
  // element a sample.
  int64_t whole(uint64_t i) const;
};

// kBadData unless some field can hold such numbers.
Status check_field_kind(const FieldValues& values);

// Writes spec.bytes() bytes of sample i. kBadData, naming array and sample, for a float that is
// NaN, infinite or beyond float32, for a whole number beyond int64, and for a weight below 0.
// REQUIRES: the spec has the sizes of `values` and a type from the table above; it is not the
// label.
Status copy_field(const FieldValues& values, const FieldSpec& spec, uint64_t i, std::byte* out);

// True if copy_field() refuses some values of this kind, so that they must be looked at.
bool may_be_refused(const FieldValues& values, const FieldSpec& spec);

}  // namespace lockstep::data
