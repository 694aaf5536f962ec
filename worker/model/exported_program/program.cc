#include "worker/model/exported_program/program.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace lockstep::exported {
namespace {

struct DtypeRow {
  ProgramDtype dtype;
  uint32_t bytes;
  const char* name;
};

constexpr std::array kDtypes{
    DtypeRow{ProgramDtype::kByte, 1, "uint8"},
    DtypeRow{ProgramDtype::kChar, 1, "int8"},
    DtypeRow{ProgramDtype::kShort, 2, "int16"},
    DtypeRow{ProgramDtype::kInt, 4, "int32"},
    DtypeRow{ProgramDtype::kLong, 8, "int64"},
    DtypeRow{ProgramDtype::kHalf, 2, "float16"},
    DtypeRow{ProgramDtype::kFloat, 4, "float32"},
    DtypeRow{ProgramDtype::kDouble, 8, "float64"},
    DtypeRow{ProgramDtype::kComplexHalf, 4, "complex32"},
    DtypeRow{ProgramDtype::kComplexFloat, 8, "complex64"},
    DtypeRow{ProgramDtype::kComplexDouble, 16, "complex128"},
    DtypeRow{ProgramDtype::kBool, 1, "bool"},
    DtypeRow{ProgramDtype::kBfloat16, 2, "bfloat16"},
};

const DtypeRow& row_of(ProgramDtype dtype) {
  return *std::ranges::find(kDtypes, dtype, &DtypeRow::dtype);
}

}  // namespace

uint32_t bytes_of(ProgramDtype dtype) {
  return row_of(dtype).bytes;
}

const char* name_of(ProgramDtype dtype) {
  return row_of(dtype).name;
}

uint64_t ProgramTensor::elements() const {
  uint64_t count = 1;
  for (const int64_t n : shape) count *= static_cast<uint64_t>(n);
  return count;
}

bool ProgramTensor::is_row_major() const {
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return elements() == 0;
    expected *= shape[d];
  }
  return true;
}

void for_each_place(const ProgramTensor& tensor, const std::function<void(uint64_t)>& visit) {
  const uint64_t count = tensor.elements();
  std::vector<int64_t> at(tensor.shape.size(), 0);
  int64_t place = tensor.offset;
  for (uint64_t i = 0; i < count; ++i) {
    visit(static_cast<uint64_t>(place));
    for (size_t d = at.size(); d-- > 0;) {
      place += tensor.strides[d];
      if (++at[d] < tensor.shape[d]) break;
      place -= tensor.strides[d] * tensor.shape[d];
      at[d] = 0;
    }
  }
}

void gather(const ProgramTensor& tensor, uint8_t* out) {
  const size_t bytes = bytes_of(tensor.dtype);
  const uint8_t* from = tensor.bytes.data();
  if (tensor.is_row_major()) {
    const size_t all = tensor.elements() * bytes;
    if (all > 0) std::memcpy(out, from + static_cast<size_t>(tensor.offset) * bytes, all);
    return;
  }
  for_each_place(tensor, [&](uint64_t place) {
    std::memcpy(out, from + place * bytes, bytes);
    out += bytes;
  });
}

std::shared_ptr<const float> row_major_floats(const ProgramTensor& tensor) {
  const uint8_t* first = tensor.bytes.data() + tensor.offset * static_cast<int64_t>(sizeof(float));
  const bool is_aligned = reinterpret_cast<uintptr_t>(first) % alignof(float) == 0;
  if (tensor.elements() > 0 && tensor.is_row_major() && is_aligned)
    return {tensor.mapping, reinterpret_cast<const float*>(first)};
  const std::shared_ptr<float[]> copy(new float[tensor.elements()]);
  gather(tensor, reinterpret_cast<uint8_t*>(copy.get()));
  return {copy, copy.get()};
}

}  // namespace lockstep::exported
