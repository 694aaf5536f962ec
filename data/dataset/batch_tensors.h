// A batch as the tensors that a model gets, without a library of tensors: where they lie in the
// batch's memory, and their sizes.
//
//   input    (B, C, H, W), (B, C, D, H, W) or (B, C) of rows, float32; of ids and tokens int64:
//            (B, C), (B, T), or (B, 2, T) with positions after the tokens
//   label    (B), or (B, T) of sequences, int64
//   field    (B, dims...), in its stored type (fields.h)
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/dataset/fields.h"
#include "data/dataset/sample_shape.h"

namespace lockstep::data {

struct BatchTensor {
  const std::byte* data = nullptr;
  FieldType type = FieldType::kF32;
  std::vector<int64_t> sizes;
  int64_t sample_stride = 0;  // elements from one sample to the next; within one they are row-major
};

BatchTensor input_tensor(const SampleShape& shape, const void* inputs, uint64_t samples);
BatchTensor label_tensor(const SampleShape& shape, const int64_t* labels, uint64_t samples);
// REQUIRES: shape.fields->specs()[field] is no label.
BatchTensor field_tensor(const SampleShape& shape, const int64_t* labels, uint64_t samples,
                         size_t field);

}  // namespace lockstep::data
