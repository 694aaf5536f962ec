// The lane kCompute as LibTorch knows it: the current stream, and the work that may be recorded
// from it as a CUDA graph. It is an interface of plain values, like DeviceModule. On a GPU it comes
// from a library of its own, liblockstep-cuda-torch.so, because it needs LibTorch's CUDA library.
// Neither the worker nor liblockstep-cuda.so links LibTorch's CUDA library.
//
// INVARIANTS
//  Q1 A recording may be replayed as long as the memory that it uses lasts: the memory of the
//     DeviceModule. Only replays write to the memory of tensors that were made while recording.
//  Q2 At most one recording is replayed at a time, because all recordings share the memory of their
//     tensors.
//
// Errors: kInternal. An error of record() leaves everything as before the call.
//
// Thread-safety: one thread at a time. make_current(): any thread, for itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "comm/base/status.h"

namespace lockstep {

class VarlenAttention;

class Recording {
 public:
  virtual ~Recording() = default;
  // Enqueues the whole recording on kCompute.
  virtual Status replay() = 0;
};

class TorchQueue {
 public:
  virtual ~TorchQueue() = default;

  // From here on the LibTorch operators that this thread calls, and their backward, run on
  // kCompute.
  virtual Status make_current() = 0;

  // LibTorch's allocator keeps the memory of freed tensors for later ones. Gives it back to the
  // device, once the device has no use for it. Not while recording.
  virtual Status empty_cache() = 0;

  // Attention over packed documents by this device's kernels
  // (worker/torch/model/document_attention.h); null: none. It lasts as long as the queue.
  virtual const VarlenAttention* varlen_attention() const { return nullptr; }

  // The number of memory requests that LibTorch's allocator has finally refused so far. Any thread.
  virtual int64_t refused_allocations() const { return 0; }

  // True if the queue can record.
  virtual bool records() const = 0;
  // Calls `body`, and records the work that it enqueues on kCompute instead of running the work.
  // `body` must have run eagerly before. It waits for nothing, and asks the DeviceModule for no
  // memory. An exception from `body` becomes an error. The queue may keep `body` and call it again
  // instead of a replay (tests do), so everything that `body` refers to must last as long as the
  // recording. REQUIRES: make_current() in this thread.
  virtual Result<std::unique_ptr<Recording>> record(const std::function<Status()>& body) = 0;
};

// The entry of the library for GPUs, as in module_entry.h. `stream`: the cudaStream_t of kCompute,
// which outlives the queue. A null queue: LibTorch cannot use the stream, and `error` says why. The
// caller owns both. A plain C struct, as its function has a C name.
struct OpenedTorchQueue {
  uint32_t version;  // kDeviceModuleVersion
  TorchQueue* queue;
  Status* error;
};
using OpenTorchQueue = OpenedTorchQueue (*)(void* stream, int device);

inline constexpr char kTorchQueueLibrary[] = "liblockstep-cuda-torch.so";
inline constexpr char kTorchQueueEntry[] = "lockstep_open_torch_queue";

}  // namespace lockstep
