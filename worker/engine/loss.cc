#include "worker/engine/loss.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

SlotLoss softmax_cross_entropy(const float* logits, const int64_t* labels, uint64_t batch,
                               uint64_t classes, uint64_t step_samples, float* gradient) {
  SlotLoss loss;
  const float scale = 1.0f / static_cast<float>(step_samples);
  for (uint64_t b = 0; b < batch; ++b) {
    const float* row = logits + b * classes;
    const auto label = static_cast<uint64_t>(labels[b]);
    const float* largest = std::max_element(row, row + classes);
    float total = 0;
    for (uint64_t c = 0; c < classes; ++c) total += std::exp(row[c] - *largest);
    const float log_total = std::log(total);
    loss.sum += -static_cast<double>(row[label] - *largest - log_total);
    loss.correct += static_cast<uint64_t>(largest - row) == label;
    if (gradient == nullptr) continue;
    float* out = gradient + b * classes;
    for (uint64_t c = 0; c < classes; ++c)
      out[c] = (std::exp(row[c] - *largest - log_total) - (c == label ? 1.0f : 0.0f)) * scale;
  }
  return loss;
}

}  // namespace lockstep
