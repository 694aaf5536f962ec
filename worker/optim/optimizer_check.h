// Whether the settings of an optimizer make sense.
//
// Thread-safety: pure.
#pragma once

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"

namespace lockstep {

// kUsage, naming the key, its value and what it can be. Looks only at what the named optimizer
// uses.
Status check_optimizer(const wire::OptimizerSpec& spec);

}  // namespace lockstep
