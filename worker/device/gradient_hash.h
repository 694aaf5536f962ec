// The hash of a slot's gradients that lie in a device's memory.
//
// Thread-safety: as DeviceReader.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "worker/device/device_reader.h"
#include "worker/engine/flat_layout.h"

namespace lockstep {

// As hash_gradients() of engine/self_check.h. `region`: memory of the device, as all earlier work
// on kCompute has left it.
Result<uint64_t> hash_gradients(DeviceReader& reader, const FlatLayout& layout,
                                const float* region);

}  // namespace lockstep
