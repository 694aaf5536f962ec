// What the NCCL backend does on the device besides NCCL: the communication stream, sums, and the
// comparison of tags. A seam: CudaQueue does it on a GPU, tests do it in plain memory.
//
// Everything is enqueued and nothing waits, in the order of the calls, on the stream that NCCL
// gets.
//
// TAGS (C4). With every exchange rides an all-reduce of two words, the maximum of (tag, ~tag) over
// all ranks: it gives back what a rank has put in only if all have put in the same. Where it does
// not, check_tag() closes the gate, in stream order, so that no step is applied; the host sees
// tags_differ() at its next call.
//
// Thread-safety: one thread at a time, tags_differ() from any.
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

  // What is enqueued here from now on runs after what is on the stream of gradients now.
  virtual Status follow_gradients() = 0;
  // What is enqueued on the compute stream from now on runs after what is here now.
  virtual Status hold_compute() = 0;

  // Remembers what is enqueued now; whether all of that has run. Neither waits.
  virtual Status mark_end() = 0;
  virtual Result<bool> reached_end() = 0;

  virtual Status sum(const DeviceSum& sum) = 0;

  // Memory for `elements` floats that lasts until a call with more; not zeroed.
  virtual Result<float*> stage(uint64_t elements) = 0;

  virtual Status put_tag(uint64_t tag) = 0;
  virtual const uint64_t* tag_sent() const = 0;  // device memory, kTagWords
  virtual uint64_t* tag_received() = 0;          // likewise
  virtual Status check_tag(uint64_t tag, Generation generation) = 0;
  virtual bool tags_differ(Generation generation) const = 0;
};

}  // namespace lockstep::nccl
