// How long a process waits for its training thread when the run is over for it.
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

}  // namespace lockstep
