// Figures of many floats, which help to find a wrong value.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace lockstep {

struct TensorStats {
  std::string name;
  uint64_t values = 0;
  uint64_t non_finite = 0;
  double sum_of_squares = 0;  // of the finite values, as are the extremes
  float smallest = std::numeric_limits<float>::infinity();
  float largest = -std::numeric_limits<float>::infinity();

  void add(const float* data, uint64_t count);
  double norm() const;
};

}  // namespace lockstep
