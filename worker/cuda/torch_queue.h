// The lane kCompute as LibTorch knows it: its current stream, and what may be recorded from it as a
// CUDA graph. An interface of plain values, as DeviceModule. On a GPU it comes from a library of
// its own, liblockstep-cuda-torch.so, since it needs LibTorch's CUDA library, of which neither the
// worker nor liblockstep-cuda.so links anything.
//
// INVARIANTS
//  Q1 What is recorded may be replayed as long as the memory lasts that it was given: that of the
//     DeviceModule. Tensors made while recording have memory that only replays write to.
//  Q2 At most one recording is replayed at a time: all share the memory of their tensors.
//
// Errors: kInternal. After an error of record() everything is as before it.
//
// Thread-safety: one thread at a time; make_current() any thread, for itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "comm/base/status.h"

namespace lockstep {

class Recording {
 public:
  virtual ~Recording() = default;
  // Enqueues all of it on kCompute.
  virtual Status replay() = 0;
};

class TorchQueue {
 public:
  virtual ~TorchQueue() = default;

  // From here on LibTorch's operators that this thread calls, and their backward, run on kCompute.
  virtual Status make_current() = 0;

  // Whether there is anything to record with.
  virtual bool records() const = 0;
  // Calls `body`, and records what it enqueues on kCompute instead of running it. `body` waits for
  // nothing, asks the DeviceModule for no memory, and all of it has run eagerly before. What it
  // throws becomes an error. It may be kept, and called again instead of a replay (tests do): what
  // it refers to lasts as long as the recording. REQUIRES: make_current() in this thread.
  virtual Result<std::unique_ptr<Recording>> record(const std::function<Status()>& body) = 0;
};

// The entry of the library for GPUs, as module_entry.h. `stream`: the cudaStream_t of kCompute,
// which outlives the queue. Null: LibTorch cannot use it, and `error` says why; the caller owns
// both.
struct OpenedTorchQueue {
  uint32_t version = 0;  // kDeviceModuleVersion
  TorchQueue* queue = nullptr;
  Status* error = nullptr;
};
using OpenTorchQueue = OpenedTorchQueue (*)(void* stream, int device);

inline constexpr char kTorchQueueLibrary[] = "liblockstep-cuda-torch.so";
inline constexpr char kTorchQueueEntry[] = "lockstep_open_torch_queue";

}  // namespace lockstep
