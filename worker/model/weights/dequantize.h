// Weights in 8 bits, as lockstep export model --int8 writes them, back to floats.
//
// The scales of the tensor NAME of I8 are NAME_scale, of F32 and with as many dimensions: each is
// 1, except the dimension of the channels.
//
// Thread-safety: values and a free function.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "worker/model/weights/weight_files.h"

namespace lockstep {

inline constexpr char kScaleEnding[] = "_scale";

struct FloatTensors {
  std::vector<FileTensor> tensors;        // by name; into the files, or into `floats`
  std::deque<std::vector<float>> floats;  // of those that were in 8 bits
};

// The tensors of the files, with floats in place of numbers and scales. kBadData for numbers
// without scales. `files` outlives the result.
Result<FloatTensors> dequantized(const WeightFiles& files);

}  // namespace lockstep
