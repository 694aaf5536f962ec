// Ends a worker's process: waits for its training thread when the run is over for it, and leaves
// the rest to the kernel.
//
// Thread-safety: the main thread.
#pragma once

#include <chrono>
#include <future>

namespace lockstep {

// Returns once `training_over` is ready. If it is not after `may_take`, ends the process with
// `code` and runs no destructor: the thread is inside a long computation, or inside an abort of
// NCCL that does not return, and destructors would wait for either.
void wait_or_leave(std::future<void>& training_over, std::chrono::milliseconds may_take, int code);

// Flushes the streams of C, and ends the process with `code` without destructors of static objects
// and functions of atexit(). In a process with LibTorch those take a quarter of the time of a short
// command: they unregister its thousands of operators, one by one.
// REQUIRES: other threads of ours have ended.
[[noreturn]] void end_process(int code);

}  // namespace lockstep
