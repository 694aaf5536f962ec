// Leaves the pool from which an allocator of LibTorch gives memory while a graph is captured.
// CUDAGraph leaves the pools of both allocators (device, pinned memory) only at the end of a
// capture that went well. An allocator that has not left gives later tensors memory of the pool,
// and asks a filter that refers to the graph, which is gone by then.
//
// Thread-safety: as the functions that are given.
#pragma once

#include <exception>

namespace lockstep::cuda {

// How far CUDAGraph came with a capture that failed.
enum class CaptureFailed {
  kAtBegin,  // each allocator uses the pool, or not yet
  kAtEnd,    // each allocator uses the pool still, or has left it and counts a user too many
  kLater,    // all have left it; CUDAGraph's destructor says that its user is gone
};

// `end`: the allocator gives from the pool no longer; throws if it did not. `release`: the pool has
// one user less.
template <typename End, typename Release>
void leave_pool(CaptureFailed when, const End& end, const Release& release) {
  bool was_used = true;
  try {
    end();
  } catch (const std::exception&) {
    was_used = false;
  }
  if (!was_used && when != CaptureFailed::kAtEnd) return;
  try {
    release();
  } catch (const std::exception&) {
    // It had no user: then there is nothing to do.
  }
}

}  // namespace lockstep::cuda
