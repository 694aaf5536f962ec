// Tells what an XID, an error number in the driver's log, says about the GPU. Source: NVIDIA's
// catalog, https://docs.nvidia.com/deploy/xid-errors, and its guide to memory errors,
// https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt.
//
// Thread-safety: pure.
#pragma once

#include <cstdint>

namespace lockstep {

enum class XidMeans : uint8_t {
  kProgram,  // a program that computes, or is killed, causes it on a healthy GPU
  kWatch,    // the GPU goes on; also every number that is in no list here
  kReset,    // the GPU computes wrong or not at all until it is reset or replaced
};

XidMeans meaning_of_xid(uint64_t xid);

}  // namespace lockstep
