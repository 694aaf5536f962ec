// A state's tensors as they cross the C interface (core.h), in both directions. They point to the
// memory of their sources.
//
// Thread-safety: pure functions.
#pragma once

#include <span>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/state_tensor.h"
#include "worker/script/core.h"

namespace lockstep {

// kInternal for an unknown type or section.
Result<std::vector<StateTensor>> state_of(const ls_reply& reply);
std::vector<ls_tensor> tensors_of(std::span<const StateTensor> state);

}  // namespace lockstep
