// The atomics of gate_word.h for a word in the host's memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep::testing {

struct HostAtomics {
  static uint64_t compare_and_swap(uint64_t* word, uint64_t expected, uint64_t next) {
    std::atomic_ref<uint64_t>(*word).compare_exchange_strong(expected, next);
    return expected;
  }
  static uint64_t fetch_or(uint64_t* word, uint64_t bits) {
    return std::atomic_ref<uint64_t>(*word).fetch_or(bits);
  }
};

}  // namespace lockstep::testing
