// Asks a device for memory outside of LibTorch, whose allocator keeps the memory of freed tensors.
// If the device has no memory left, LibTorch gives back what it keeps, and the device is asked once
// more.
//
// Thread-safety: as the functions that are given.
#pragma once

#include "comm/base/status.h"
#include "worker/cuda/torch_queue.h"

namespace lockstep::cuda {

// `ask`: Result<void*>, with kNoMemory where the device has none. `clear`: takes back the error
// that a failed `ask` leaves in CUDA. The next launch of a kernel would report it as its own.
// `queue`: LibTorch's view of the device; null: LibTorch has no memory there.
template <typename Ask, typename Clear>
Result<void*> ask_or_make_room(const Ask& ask, const Clear& clear, TorchQueue* queue) {
  Result<void*> got = ask();
  if (got.is_ok()) return got;
  clear();
  if (got.status().code() != Code::kNoMemory || queue == nullptr) return got;
  if (!queue->empty_cache().is_ok()) return got;
  got = ask();
  if (!got.is_ok()) clear();
  return got;
}

}  // namespace lockstep::cuda
