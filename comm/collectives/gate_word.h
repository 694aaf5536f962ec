// One 64-bit word of device memory that decides whether a step may change the boundary state.
//
// An aborted collective returns as if it had finished, and work enqueued after it runs. So no work
// after a collective may touch parameters before it has passed this gate (nccl/README.md):
//
//     bit 63: closed      bits 0..62: steps let through so far
//
// INVARIANTS
//  W1 pass_gate(step) succeeds at most once a step, in order, and never after close_gate().
//  W2 The value that close_gate() returns tells how many steps are applied or surely will be. It is
//     this member's answer to "prepare".
//  W3 Both are one atomic operation, so a step passes in whole or not at all.
//
// Thread-safety: the same as for the atomics passed in: any thread of the device, or of the host
// for a word in host memory.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"

namespace lockstep {

inline constexpr uint64_t kGateClosed = uint64_t{1} << 63;

LOCKSTEP_HOST_DEVICE bool is_gate_closed(uint64_t word) {
  return (word & kGateClosed) != 0;
}

LOCKSTEP_HOST_DEVICE uint64_t steps_let_through(uint64_t word) {
  return word & ~kGateClosed;
}

// Atomics has: static uint64_t compare_and_swap(uint64_t* word, uint64_t expected, uint64_t next);
//              static uint64_t fetch_or(uint64_t* word, uint64_t bits);   both return the old value

// True if `step` (0-based) may be applied: all steps before it passed, and the gate is not closed.
template <typename Atomics>
LOCKSTEP_HOST_DEVICE bool pass_gate(uint64_t* word, uint64_t step) {
  return Atomics::compare_and_swap(word, step, step + 1) == step;
}

// Returns the old word.
template <typename Atomics>
LOCKSTEP_HOST_DEVICE uint64_t close_gate(uint64_t* word) {
  return Atomics::fetch_or(word, kGateClosed);
}

}  // namespace lockstep
