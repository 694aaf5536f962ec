// Asks a device for memory beside LibTorch, whose allocator keeps what freed tensors have left.
// What it keeps may be all that is left: then LibTorch gives it back, and the device is asked once
// more.
//
// Thread-safety: as the functions that are given.
#pragma once

#include "comm/base/status.h"
#include "worker/cuda/torch_queue.h"

namespace lockstep::cuda {

// `ask`: Result<void*>, with kNoMemory where the device has none. `clear`: takes back the error
// that a failed `ask` leaves behind in CUDA, and that the next launch of a kernel would report as
// its own. `queue`: LibTorch's view of the device; null: LibTorch has no memory there.
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
