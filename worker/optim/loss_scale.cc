#include "worker/optim/loss_scale.h"

#include <algorithm>

namespace lockstep {

LossScaleRule loss_scale_rule(const wire::TrainSpec& train) {
  return {.is_on = train.precision() == "fp16",
          .growth = static_cast<float>(train.loss_scale_growth()),
          .backoff = static_cast<float>(train.loss_scale_backoff()),
          .growth_every = static_cast<int64_t>(train.loss_scale_growth_every())};
}

LossScaler::LossScaler(const wire::TrainSpec& train)
    : initial_(static_cast<float>(train.loss_scale())), rule_(loss_scale_rule(train)) {
  reset();
}

void LossScaler::reset() {
  state_ = {};
  if (rule_.is_on) state_.scale = std::max(initial_, kSmallestLossScale);
}

}  // namespace lockstep
