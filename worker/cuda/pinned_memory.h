// Pages of the host that copies of one GPU may use directly.
//
// CUDA takes the device from the calling thread, and makes a context on it: hundreds of MiB. So
// both calls set the device first, and a thread that has never used CUDA makes none on device 0.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>

namespace lockstep::cuda {

// Does nothing for memory without pages of its own, or if the system allows no more locked memory:
// copies are then slower, and still right.
void pin(int device, void* memory, size_t bytes);
void unpin(int device, void* memory);

}  // namespace lockstep::cuda
