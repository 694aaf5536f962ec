// The device work of the NCCL backend besides NCCL: the communication stream and sums. A seam:
// CudaQueue does it on a GPU. Tests run CudaQueue on a CUDA of their own.
//
// Every call enqueues on the stream that NCCL gets, in the order of calls. Nothing waits.
//
// Thread-safety: one thread at a time, use_device() from any thread.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "comm/collectives/nccl/sum_program.h"

namespace lockstep::nccl {

class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  // Makes the queue's device the calling thread's. NCCL and CUDA take the device from the thread.
  virtual Status use_device() = 0;

  virtual void* stream() = 0;  // a cudaStream_t

  // Later work on this queue runs after the present work of the gradients' stream.
  virtual Status follow_gradients() = 0;
  // Later work on the compute stream runs after the present work of this queue.
  virtual Status hold_compute() = 0;

  // mark_end() marks the present end of the queue. reached_end() tells if all work before the mark
  // has run. Neither waits.
  virtual Status mark_end() = 0;
  virtual Result<bool> reached_end() = 0;

  virtual Status sum(const DeviceSum& sum) = 0;

  // Memory for `elements` floats, valid until a call with more. Not zeroed.
  virtual Result<float*> stage(uint64_t elements) = 0;
};

}  // namespace lockstep::nccl
