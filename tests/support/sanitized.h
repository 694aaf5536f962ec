// How much a test repeats where a sanitizer makes each round ten times as slow. The plain build
// runs all of it; a sanitizer looks for errors of memory and of threads, which the first rounds
// have.
#pragma once

namespace lockstep {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace lockstep
