#include "worker/torch/engine/precision.h"

#include <ATen/autocast_mode.h>

namespace lockstep {

at::ScalarType compute_type(const wire::TrainSpec& train) {
  if (train.precision() == "bf16") return at::kBFloat16;
  if (train.precision() == "fp16") return at::kHalf;
  return at::kFloat;
}

AutocastScope::AutocastScope(at::DeviceType device, at::ScalarType type)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      type_before_(at::autocast::get_autocast_dtype(device)) {
  at::autocast::set_autocast_enabled(device, type != at::kFloat);
  if (type != at::kFloat) at::autocast::set_autocast_dtype(device, type);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_dtype(device_, type_before_);
  at::autocast::set_autocast_enabled(device_, was_enabled_);
}

}  // namespace lockstep
