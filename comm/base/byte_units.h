// Units of byte counts.
//
// Thread-safety: constants.
#pragma once

#include <cstdint>

namespace lockstep {

inline constexpr uint64_t kKib = 1024;
inline constexpr uint64_t kMib = 1024 * kKib;
inline constexpr uint64_t kGib = 1024 * kMib;

}  // namespace lockstep
