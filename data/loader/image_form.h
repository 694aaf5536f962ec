// Thread-safety: values and a pure function.
#pragma once

#include <cstdint>

#include "data/dataset/sample_shape.h"

namespace lockstep::data {

enum class ImageForm {
  kFloats,  // transformed
  kStored,  // bytes, not transformed
};

// Bytes of one sample in a batch, without its labels.
inline uint64_t input_bytes(const SampleShape& shape, ImageForm form) {
  if (shape.is_sequence() || shape.has_ids()) return shape.elements() * sizeof(int64_t);
  const bool are_bytes = form == ImageForm::kStored && shape.has_bytes();
  return shape.elements() * (are_bytes ? sizeof(uint8_t) : sizeof(float));
}

}  // namespace lockstep::data
