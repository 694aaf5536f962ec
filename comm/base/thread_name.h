// Names the calling thread, for people who look at processes and at saved stacks.
//
// Thread-safety: affects the calling thread only.
#pragma once

#include <pthread.h>

namespace lockstep {

// At most 15 characters, the kernel's limit.
inline void name_this_thread(const char* name) {
  (void)pthread_setname_np(pthread_self(), name);
}

}  // namespace lockstep
