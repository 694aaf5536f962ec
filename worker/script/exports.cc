// The C interface over ScriptRun: checks arguments, and turns errors into codes.
#include <signal.h>

#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "comm/base/limits.h"
#include "worker/script/core.h"
#include "worker/script/script_run.h"
#include "worker/script/worker_lines.h"
#include "worker/session/start_files.h"

struct ls_run {
  std::unique_ptr<lockstep::ScriptRun> run;
};

namespace lockstep {
namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

int code_of(const Status& status) {
  if (status.is_ok()) return LS_OK;
  last_error() = status.message();
  if (status.code() == Code::kAborted) return LS_CLOSED;
  return exit_code(status);
}

// No exception may cross a C interface.
template <typename Body>
int guarded(const Body& body) {
  try {
    return code_of(body());
  } catch (const std::bad_alloc&) {
    return code_of({Code::kInternal, "there is no memory left"});
  } catch (const std::exception& e) {
    return code_of({Code::kInternal, std::string("an unexpected error: ") + e.what()});
  }
}

// `body` with the engine of the run, which has begun.
template <typename Body>
int in_engine(ls_run* run, const Body& body) {
  return guarded([&]() -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(ScriptEngine* const engine, run->run->engine());
    return body(*engine);
  });
}

std::vector<ScriptFacts::Tensor> tensors_of(const ls_tensor* tensors, uint32_t count) {
  std::vector<ScriptFacts::Tensor> out;
  for (const ls_tensor& t : std::span(tensors, count))
    out.push_back({t.name, {t.shape, t.shape + t.dims}, t.is_late != 0});
  return out;
}

Result<wire::JobSpec> job_of(const std::optional<WorkerOptions>& worker, const void* job,
                             size_t bytes) {
  if (worker) return read_job(worker->run_dir);
  wire::JobSpec spec;
  if (job == nullptr || bytes > limits::kJobFileBytes ||
      !spec.ParseFromArray(job, static_cast<int>(bytes)))
    return Status(Code::kUsage, "the job is none; lockstep resolve --protobuf writes one");
  return spec;
}

Result<std::unique_ptr<ScriptRun>> open(const char* worker, const void* job, size_t bytes) {
  std::optional<WorkerOptions> options;
  if (worker != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(options, parse_worker_lines(worker));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(wire::JobSpec spec, job_of(options, job, bytes));
  return ScriptRun::open(std::move(options), std::move(spec));
}

// The caller's from here on, until ls_batch_free().
ls_batch given(std::unique_ptr<ls_batch_handle> handle) {
  ls_batch batch = handle->view();
  static_cast<void>(handle.release());
  return batch;
}

}  // namespace
}  // namespace lockstep

using namespace lockstep;  // NOLINT: the functions below have the C interface's names

const char* ls_error(void) {
  return last_error().c_str();
}

int ls_open(const char* worker, const void* job, size_t job_bytes, ls_run** run) {
  return guarded([&]() -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(auto opened, open(worker, job, job_bytes));
    *run = new ls_run{std::move(opened)};
    return Status::ok();
  });
}

int ls_open_replay(const char* plan, ls_run** run) {
  return guarded([&]() -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(wire::ReplayPlan read, ScriptReplay::read(plan));
    LOCKSTEP_ASSIGN_OR_RETURN(auto opened, ScriptRun::open_replay(std::move(read)));
    *run = new ls_run{std::move(opened)};
    return Status::ok();
  });
}

const char* ls_job(const ls_run* run) {
  return run->run->job_lines().c_str();
}

int ls_set_turns(ls_run* run, uint32_t turns) {
  return guarded([&] { return run->run->set_turns(turns); });
}

int ls_declare(ls_run* run, uint64_t samples, const char* fingerprint) {
  return guarded([&] { return run->run->declare(samples, fingerprint); });
}

int ls_open_data(ls_run* run, const char* cache, uint64_t* samples, uint64_t* eval_samples) {
  return guarded([&]() -> Status {
    const auto of_eval = eval_samples == nullptr ? EvalData::kLeave : EvalData::kOpen;
    LOCKSTEP_ASSIGN_OR_RETURN(*samples, run->run->open_data(cache, of_eval));
    if (eval_samples != nullptr) *eval_samples = run->run->eval_samples();
    return Status::ok();
  });
}

int ls_batch_of(ls_run* run, const ls_task* task, ls_batch* batch) {
  return guarded([&]() -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(auto handle, run->run->batch(*task));
    *batch = given(std::move(handle));
    return Status::ok();
  });
}

int ls_eval_batch(ls_run* run, uint64_t begin, uint64_t end, ls_batch* batch) {
  return guarded([&]() -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(auto handle, run->run->eval_batch(begin, end));
    *batch = given(std::move(handle));
    return Status::ok();
  });
}

void ls_batch_free(ls_batch_handle* handle) {
  delete handle;
}

int ls_task_of(ls_run* run, uint64_t step, uint32_t slot, ls_task* task) {
  return guarded([&]() -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto found, run->run->task(step, slot));
    if (!found) return {Code::kAborted, "the slot has no samples"};
    *task = *found;
    return Status::ok();
  });
}

int ls_indices(ls_run* run, const ls_task* task, uint64_t* indices) {
  return guarded([&] {
    return run->run->indices(*task,
                             {indices, task->end >= task->begin ? task->end - task->begin : 0});
  });
}

int ls_layout(ls_run* run, const ls_tensor* parameters, uint32_t parameter_count,
              const ls_tensor* statistics, uint32_t statistic_count, const char* const* metrics,
              const uint32_t* metric_turns, uint32_t metric_count, int has_counts,
              ls_memory* memory) {
  return guarded([&]() -> Status {
    LOCKSTEP_RETURN_IF_ERROR(
        run->run->lay_out({.parameters = tensors_of(parameters, parameter_count),
                           .statistics = tensors_of(statistics, statistic_count),
                           .metrics = {metrics, metrics + metric_count},
                           .metric_turns = {metric_turns, metric_turns + metric_count},
                           .has_counts = has_counts != 0}));
    const ScriptLayout& layout = run->run->layout();
    *memory = {.gradients = layout.gradients().data(),
               .statistics = layout.statistics().data(),
               .used = layout.used().data(),
               .parameter_begins = layout.parameter_begins().data(),
               .statistic_begins = layout.statistic_begins().data(),
               .gradient_floats = layout.gradients().size(),
               .statistic_floats = layout.statistics().size(),
               .statistics_at = layout.flat().buffer.gradients};
    return Status::ok();
  });
}

int ls_open_device(ls_run* run, const char* path) {
  return guarded([&] { return run->run->open_device(path); });
}

int ls_evaluates(ls_run* run, const char* name, uint64_t samples, const char* fingerprint,
                 const char* const* metrics, uint32_t metric_count, int knows_right) {
  return guarded([&] {
    return run->run->evaluate({.name = name,
                               .samples = samples,
                               .fingerprint = fingerprint,
                               .metrics = {metrics, metrics + metric_count},
                               .knows_right = knows_right != 0});
  });
}

int ls_begin(ls_run* run, const char* const* fingerprint, uint32_t lines, const char* const* keys,
             const char* const* values, uint32_t facts, const char* state_hash,
             const char* code_hash, const double* lrs) {
  return guarded([&] {
    std::vector<wire::IdentityFact> identity(facts);
    for (uint32_t i = 0; i < facts; ++i) {
      identity[i].set_key(keys[i]);
      identity[i].set_value(values[i]);
    }
    return run->run->begin({.fingerprint = {fingerprint, fingerprint + lines},
                            .identity = std::move(identity),
                            .state_hash = state_hash,
                            .code_hash = code_hash},
                           lrs);
  });
}

int ls_next(ls_run* run, const ls_reply* reply, ls_order* order, int wait_ms) {
  bool has_order = false;
  const int code = guarded([&]() -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(
        has_order, run->run->desk().next(reply, order, std::chrono::milliseconds(wait_ms)));
    return Status::ok();
  });
  return code == LS_OK && !has_order ? LS_AGAIN : code;
}

int ls_upcoming(ls_run* run, uint32_t most, ls_task* tasks, uint32_t* count) {
  return guarded([&]() -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(ScriptEngine* const engine, run->run->engine());
    const std::vector<ls_task> next = engine->upcoming(most);
    std::copy(next.begin(), next.end(), tasks);
    *count = static_cast<uint32_t>(next.size());
    return Status::ok();
  });
}

int ls_has_samples(ls_run* run, const uint64_t* indices, uint64_t count) {
  return in_engine(run, [&](ScriptEngine& engine) { return engine.has_samples({indices, count}); });
}

int ls_backward_begins(ls_run* run) {
  return in_engine(run, [&](ScriptEngine& engine) { return engine.backward_begins(); });
}

int ls_take(ls_run* run, uint32_t parameter, const void* data, uint8_t dtype, uint64_t elements) {
  return guarded([&]() -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(ScriptEngine* const engine, run->run->engine());
    if (dtype >= std::size(kDTypes)) return {Code::kUsage, "a gradient has a type of no number"};
    return engine->take(parameter, data, static_cast<DType>(dtype), elements);
  });
}

int ls_take_statistic(ls_run* run, uint32_t statistic, const float* data, uint64_t elements) {
  return in_engine(run, [&](ScriptEngine& engine) {
    return engine.take_statistic(statistic, {data, elements});
  });
}

int ls_place(ls_run* run, float** place) {
  return guarded([&]() -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(ScriptEngine* const engine, run->run->engine());
    LOCKSTEP_ASSIGN_OR_RETURN(*place, engine->place());
    return Status::ok();
  });
}

int ls_writes_on(ls_run* run, void* stream) {
  return in_engine(run, [&](ScriptEngine& engine) { return engine.writes_on(stream); });
}

int ls_wrote(ls_run* run, uint32_t parameter, uint64_t elements) {
  return in_engine(run, [&](ScriptEngine& engine) { return engine.wrote(parameter, elements); });
}

int ls_wrote_statistic(ls_run* run, uint32_t statistic, uint64_t elements) {
  return in_engine(
      run, [&](ScriptEngine& engine) { return engine.wrote_statistic(statistic, elements); });
}

int ls_reads_on(ls_run* run, void* stream) {
  return in_engine(run, [&](ScriptEngine& engine) { return engine.reads_on(stream); });
}

int ls_has_read(ls_run* run, void* stream) {
  return in_engine(run, [&](ScriptEngine& engine) { return engine.has_read(stream); });
}

int ls_is_check(const ls_run* run, uint64_t applied) {
  return run->run->is_check(applied) ? 1 : 0;
}

void ls_set_paused(ls_run* run, int is_paused) {
  run->run->desk().set_paused(is_paused != 0);
}

void ls_request_stop(ls_run* run) {
  run->run->request_stop();
}

void ls_close(ls_run* run, int exit_code) {
  if (run == nullptr) return;
  run->run->close(exit_code);
  run->run->leave_layout();
  // The end of the loop blocks signals on this thread, as a program that is about to end wants. A
  // script goes on, and gets its mask back.
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  delete run;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}
