#include "worker/engine/step_trace.h"

#include <ATen/record_function.h>

#include <memory>
#include <string>

namespace lockstep {
namespace {

// LibTorch's hooks are plain functions, of one thread here: so is what they find their log by.
thread_local TraceLog* operator_log = nullptr;

struct Begun final : at::ObserverContext {
  explicit Begun(int64_t ns) : begin_ns(ns) {}
  int64_t begin_ns;
};

std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction&) {
  return operator_log == nullptr ? nullptr : std::make_unique<Begun>(operator_log->now_ns());
}

void operator_ends(const at::RecordFunction& function, at::ObserverContext* context) {
  if (operator_log == nullptr || context == nullptr) return;
  operator_log->add({TraceLane::kTraining, "operator", function.name(),
                     static_cast<Begun*>(context)->begin_ns, operator_log->now_ns()});
}

}  // namespace

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
  operator_log = log_;
  operators_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(operator_begins, operator_ends)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

StepTrace::~StepTrace() {
  if (log_ == nullptr) return;
  at::removeCallback(operators_);
  operator_log = nullptr;
  phases_.switch_to(phases_.current());  // so that the last phase ends here
  phases_.observe({});
  log_->add({TraceLane::kTraining, "step", "step " + std::to_string(step_ + 1), begin_ns_,
             log_->now_ns()});
}

}  // namespace lockstep
