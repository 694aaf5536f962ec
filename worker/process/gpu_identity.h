// The identity of a worker's GPU, as the worker tells it to the coordinator.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/wire/control.pb.h"

namespace lockstep {

// The visible GPU of this number, modulo how many there are; nothing if the driver cannot tell it
// from others. Without it the coordinator cannot see that two workers share a GPU.
std::optional<wire::GpuIdentity> identity_of_gpu(uint32_t index);

}  // namespace lockstep
