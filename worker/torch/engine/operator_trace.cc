#include "worker/torch/engine/operator_trace.h"

#include <ATen/record_function.h>

#include <memory>

namespace lockstep {
namespace {

// LibTorch's hooks are plain functions, here of one thread, which find their log in this variable.
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

OperatorTrace::OperatorTrace(TraceLog* log, Step step)
    : is_traced_(log != nullptr && log->window().contains(step)) {
  if (!is_traced_) return;
  operator_log = log;
  operators_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(operator_begins, operator_ends)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OperatorTrace::~OperatorTrace() {
  if (!is_traced_) return;
  at::removeCallback(operators_);
  operator_log = nullptr;
}

}  // namespace lockstep
