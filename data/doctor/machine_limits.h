// The upper limits of this machine, apart from our code.
// Thread-safety: free functions.
#pragma once

namespace lockstep::doctor {

// Bytes/s that one thread copies from memory to memory, the best of a few attempts.
double memory_copy_rate();

}  // namespace lockstep::doctor
