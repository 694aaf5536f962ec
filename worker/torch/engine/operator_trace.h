// Records into a TraceLog every operator and autograd node that LibTorch runs on this thread, as
// long as the object lives. On a CPU these are all of a step: autograd runs CPU gradients on the
// calling thread. engine/step_trace.h records the rest of a step.
//
// Without a log, or outside the log's window, nothing is hooked, and the cost is one comparison.
//
// Thread-safety: made and destroyed on the training thread. Only the operators of this thread are
// seen.
#pragma once

#include <cstdint>

#include "comm/base/ids.h"
#include "metrics/files/trace_log.h"

namespace lockstep {

class OperatorTrace {
 public:
  // `log` may be null, and outlives the object.
  OperatorTrace(TraceLog* log, Step step);
  ~OperatorTrace();
  OperatorTrace(const OperatorTrace&) = delete;
  OperatorTrace& operator=(const OperatorTrace&) = delete;

 private:
  const bool is_traced_;
  uint64_t operators_ = 0;  // LibTorch's handle of the hook
};

}  // namespace lockstep
