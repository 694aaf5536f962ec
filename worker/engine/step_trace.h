// Records one step into a TraceLog while it exists: the step itself, the phases as the phase clock
// switches them, and every operator and autograd node that LibTorch runs on this thread, which are
// all (autograd runs CPU gradients on the thread that asked for them).
//
// Nothing is hooked where there is no log or the step lies outside of its window: that costs one
// comparison.
//
// Thread-safety: made and destroyed on the training thread, within which operators are seen.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/base/ids.h"
#include "metrics/base/phase_clock.h"
#include "metrics/files/trace_log.h"

namespace lockstep {

class StepTrace {
 public:
  // `log` may be null. Both outlive the object.
  StepTrace(TraceLog* log, Step step, PhaseClock& phases);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // Null: this step is not traced.
  TraceLog* log() const { return log_; }

 private:
  TraceLog* const log_;
  const Step step_;
  PhaseClock& phases_;
  int64_t begin_ns_ = 0;
  uint64_t operators_ = 0;  // LibTorch's handle of the hook
};

}  // namespace lockstep
