#include "worker/torch/engine/precision.h"

#include <ATen/autocast_mode.h>

#include "comm/run/job/fp8_rule.h"

namespace lockstep {

at::ScalarType compute_type(const wire::TrainSpec& train) {
  if (train.precision() == "bf16" || uses_fp8(train)) return at::kBFloat16;
  if (train.precision() == "fp16") return at::kHalf;
  return at::kFloat;
}

bool uses_fp8(const wire::TrainSpec& train) {
  return train.precision() == "fp8";
}

Status check_precision(const wire::JobSpec& job, const DeviceModule* module) {
  static_assert(kFp8WidthMultiple == cuda::kFp8Multiple);
  if (const auto conflict = fp8_conflict(job))
    return {Code::kUsage, "train.precision=fp8 " + conflict->why + "; " + conflict->advice};
  return uses_fp8(job.train()) && module != nullptr ? module->check_fp8() : Status::ok();
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
