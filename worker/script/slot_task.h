// A slot of a script: its place in the order of an epoch, and its seed.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "comm/base/ids.h"
#include "comm/run/plan/step_plan.h"
#include "worker/script/core.h"

namespace lockstep {

// Seeds every random number of a slot.
uint32_t slot_seed(uint64_t run_seed, Step step, uint32_t slot);

// The task of a slot; its step has `samples`, without the samples of skipped slots.
ls_task task_of(const RunShape& shape, uint64_t run_seed, Step step, uint32_t slot,
                uint64_t samples);

}  // namespace lockstep
