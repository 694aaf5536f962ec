#include "worker/engine/step_trace.h"

#include <string>

namespace lockstep {

StepTrace::StepTrace(TraceLog* log, Step step, PhaseClock& phases)
    : log_(log != nullptr && log->window().contains(step) ? log : nullptr),
      step_(step),
      phases_(phases) {
  if (log_ == nullptr) return;
  begin_ns_ = log_->now_ns();
  phases_.switch_to(phases_.current());  // what came before is no part of the step
  phases_.observe([this](WorkPhase phase, int64_t begin_ns, int64_t end_ns) {
    log_->add({TraceLane::kTraining, "phase", std::string(phase_name(phase)), begin_ns, end_ns});
  });
}

StepTrace::~StepTrace() {
  if (log_ == nullptr) return;
  phases_.switch_to(phases_.current());  // so that the last phase ends here
  phases_.observe({});
  log_->add({TraceLane::kTraining, "step", "step " + std::to_string(step_ + 1), begin_ns_,
             log_->now_ns()});
}

}  // namespace lockstep
