// A copy in the host's memory by several threads. One thread copies about 8 GB/s, and all ranks
// wait while one copies its state to the host: 28 GB of it for 7 billion parameters.
//
// Thread-safety: free functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

inline constexpr size_t kWideCopyPart = size_t{1} << 20;  // less is not worth a thread

// Copies `bytes` by at most `threads` threads, of which the caller is one. Returns how many copied.
uint32_t wide_copy(std::byte* to, const std::byte* from, size_t bytes, uint32_t threads);

// For one of several workers on this machine.
uint32_t wide_copy_threads();

}  // namespace lockstep
