#include "worker/replay/tensor_stats.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

void TensorStats::add(const float* data, uint64_t count) {
  values += count;
  for (uint64_t i = 0; i < count; ++i) {
    if (!std::isfinite(data[i])) {
      ++non_finite;
      continue;
    }
    sum_of_squares += static_cast<double>(data[i]) * data[i];
    smallest = std::min(smallest, data[i]);
    largest = std::max(largest, data[i]);
  }
}

double TensorStats::norm() const {
  return std::sqrt(sum_of_squares);
}

}  // namespace lockstep
