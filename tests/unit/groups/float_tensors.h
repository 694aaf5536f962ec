// The floats of an engine's state by name.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/support/state_of.h"
#include "worker/engine/engine.h"

namespace lockstep::testing {

struct FloatTensor {
  std::vector<float> values;
  uint64_t zeros() const {
    return static_cast<uint64_t>(std::count(values.begin(), values.end(), 0.0f));
  }
};

using FloatTensors = std::map<std::string, FloatTensor>;

inline FloatTensors floats_of(Engine& engine) {
  FloatTensors out;
  for (const StateTensor& tensor : testing::state_of(engine)) {
    if (tensor.dtype != DType::kF32) continue;
    std::vector<float>& values = out[tensor.name].values;
    values.resize(tensor.bytes / sizeof(float));
    std::memcpy(values.data(), tensor.data, tensor.bytes);
  }
  return out;
}

}  // namespace lockstep::testing
