// What this machine can do at most, apart from our code.
// Thread-safety: free functions.
#pragma once

namespace lockstep::doctor {

// Bytes a second that one thread copies from memory to memory, the best of a few attempts.
double memory_copy_rate();

}  // namespace lockstep::doctor
