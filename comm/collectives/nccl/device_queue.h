// The device work of the NCCL backend besides NCCL: the communication stream, sums, and the
// comparison of tags. A seam: CudaQueue does it on a GPU, tests do it in plain memory.
//
// Every call enqueues on the stream that NCCL gets, in the order of calls. Nothing waits.
//
// TAGS (C4). Every exchange carries an all-reduce of two words, the maximum of (tag, ~tag) over all
// ranks. It gives a rank's words back only if all ranks have put in the same. If not, check_tag()
// closes the gate, in stream order, so that no step is applied. The host sees tags_differ() at its
// next call.
//
// Thread-safety: one thread at a time, tags_differ() from any thread.
#pragma once

#include <cstdint>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/nccl/sum_program.h"

namespace lockstep::nccl {

inline constexpr uint32_t kTagWords = 2;

class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

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

  virtual Status put_tag(uint64_t tag) = 0;
  virtual const uint64_t* tag_sent() const = 0;  // device memory, kTagWords
  virtual uint64_t* tag_received() = 0;          // device memory, kTagWords
  virtual Status check_tag(uint64_t tag, Generation generation) = 0;
  virtual bool tags_differ(Generation generation) const = 0;
};

}  // namespace lockstep::nccl
