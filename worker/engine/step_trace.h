// Records one step into a TraceLog as long as the object lives: the step itself, and the phases as
// the phase clock switches them.
//
// Without a log, or outside the log's window, nothing is hooked, and the cost is one comparison.
//
// Thread-safety: made and destroyed on the training thread.
#pragma once

#include <cstdint>

#include "comm/base/ids.h"
#include "metrics/base/phase_clock.h"
#include "metrics/files/trace_log.h"

namespace lockstep {

class StepTrace {
 public:
  // `log` may be null. `log` and `phases` outlive the object.
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
};

}  // namespace lockstep
