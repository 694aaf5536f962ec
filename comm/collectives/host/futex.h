// Sleeps on a word of shared memory, also through a read-only mapping.
//
// Thread-safety: free functions without state.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep::host {

// Sleeps while `word` holds `seen`, at most `timeout_us`. May return early.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t seen, int64_t timeout_us);

// Wakes all sleepers on `word`, in any process.
void futex_wake(const std::atomic<uint32_t>& word);

// Marks a spin loop for the processor.
inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace lockstep::host
