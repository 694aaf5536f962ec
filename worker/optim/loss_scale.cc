#include "worker/optim/loss_scale.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr float kSmallestScale = 1;

}  // namespace

LossScaler::LossScaler(const wire::TrainSpec& train)
    : is_on_(train.precision() == "fp16"),
      initial_(static_cast<float>(train.loss_scale())),
      growth_(static_cast<float>(train.loss_scale_growth())),
      growth_every_(static_cast<int64_t>(train.loss_scale_growth_every())),
      backoff_(static_cast<float>(train.loss_scale_backoff())) {
  reset();
}

void LossScaler::reset() {
  state_ = {};
  if (is_on_) state_.scale = std::max(initial_, kSmallestScale);
}

bool LossScaler::update(bool is_finite) {
  if (!is_on_) return true;
  if (!is_finite) {
    state_.good_steps = 0;
    if (state_.scale <= kSmallestScale) return true;  // L2
    state_.scale = std::max(state_.scale * backoff_, kSmallestScale);
    ++state_.skipped_steps;
    return false;
  }
  if (++state_.good_steps < growth_every_) return true;
  state_.good_steps = 0;
  if (const float grown = state_.scale * growth_; std::isfinite(grown)) state_.scale = grown;
  return true;
}

}  // namespace lockstep
