// Tells whether a sanitizer makes each round ten times as slow, so that a test repeats less. The
// plain build runs all rounds; a sanitizer looks for errors of memory and of threads, which the
// first rounds would show.
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
