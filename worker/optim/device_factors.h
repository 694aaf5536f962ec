// The factors of a step as the kernels take them (worker/optim/update_rules.h): the rule that is
// the job's optimizer, and the factors of each group, grad_scale left at 1.
//
// Thread-safety: one thread at a time.
#pragma once

#include <functional>
#include <span>

#include "comm/wire/job.pb.h"
#include "worker/optim/optimizer.h"
#include "worker/optim/update_rules.h"

namespace lockstep {

using DeviceFactors = std::function<cuda::UpdateFactors(const OptimizerStep& step,
                                                        std::span<const OptimizerGroup> groups)>;

// REQUIRES: Optimizer::create() has taken the spec. The rule's flat states are in the order of
// Optimizer::state().
DeviceFactors make_device_factors(const wire::OptimizerSpec& spec);

}  // namespace lockstep
