#include "deploy/cli/run/run_in_directory.h"

#include <algorithm>
#include <cstdlib>

#include "comm/base/clock.h"
#include "comm/base/file.h"
#include "comm/environment/standard_streams.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/job/predictions.h"
#include "deploy/agent/allocator.h"
#include "deploy/agent/cloud/cloud_watch.h"
#include "deploy/agent/process.h"
#include "deploy/agent/worker_launch.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/job/job_print.h"
#include "deploy/cli/run/check_resume.h"
#include "deploy/cli/run/extend_run.h"
#include "deploy/cli/run/merge_traces.h"
#include "deploy/cli/run/prepare_run.h"
#include "deploy/cli/run/run_end.h"
#include "deploy/cli/run/supervisor.h"

namespace lockstep {
namespace {

constexpr int64_t kUsualLeaveMs = 10'000;  // SupervisorOptions::leave_ms has room for it

// A script whose Python cannot start it would fail once in every worker.
Status check_worker(const wire::JobSpec& job, const RunPlan& plan) {
  if (plan.agent_words.empty()) return Status::ok();  // no workers here
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerLaunch launch,
                            worker_launch(job, sibling_program(""), std::getenv));
  return check_python(launch);
}

std::string opening(const RunDir& dir, const wire::JobSpec& job, const PreparedData& data) {
  const auto& train = job.train();
  std::string length = train.epochs() > 0 ? plural(train.epochs(), "epoch") : "";
  if (train.max_steps() > 0)
    length += (length.empty() ? "" : ", at most ") + plural(train.max_steps(), "step");
  const std::string data_text = data.description.empty() ? "" : " on " + data.description;
  const std::string optimizer = is_script(job.model()) ? "" : job.optimizer().name() + ", ";
  return job.job() + ": " + data.model + data_text + "\n" +
         plural(job.cluster().workers(), "worker") + ", global batch " +
         (train.global_batch() == 0 ? "auto, to be found," : grouped(train.global_batch())) +
         " in " + plural(train.slots(), "slot") + ", " + length + ", " + optimizer +
         job.comm().numerics() + " numerics\n" + "run directory " + dir.path();
}

void tell_trace(const wire::JobSpec& job, const RunDir& dir) {
  if (job.train().trace().empty()) return;
  const auto merged = merge_traces(dir.path());
  if (!merged.is_ok())
    print_error("lockstep: traces not merged: %s\n", merged.status().message().c_str());
  else if (!merged->empty())
    print_text("trace of steps %s: %s (open it in ui.perfetto.dev)\n", job.train().trace().c_str(),
               merged->c_str());
}

// A reader of job.yaml wants to know what train.global_batch auto became; job.pb says it.
void keep_resolved(const wire::JobSpec& job, const RunDir& dir, Reporter& reporter) {
  if (job.train().global_batch() != 0) return;
  const auto resolved = read_job_spec(dir.path());
  if (!resolved.is_ok() || resolved->train().global_batch() == 0) return;
  const uint64_t batch = resolved->train().global_batch();
  RunStatus found;
  found.global_batch = batch;
  found.slots = resolved->train().slots();
  wire::DataFacts facts;
  if (auto stored = read_data_facts(dir.path()); stored.is_ok()) facts = std::move(*stored);
  found.steps_per_epoch = (facts.train_samples() + batch - 1) / batch;  // of no script: one turn
  reporter.batch_found(found);
  const Status kept = replace_file(dir.file(rundir::kJobText), job_text(*resolved, facts));
  if (!kept.is_ok()) print_error("lockstep: %s\n", kept.message().c_str());
}

int supervise(const RunPlan& plan, const wire::JobSpec& job, RunDir& dir, StopSignals& signals,
              Reporter& reporter) {
  SupervisorOptions options;
  options.run_dir = dir.path();
  options.seat = plan.seat;
  options.agent_words = plan.agent_words;
  options.resume = plan.resume;
  options.take_over = plan.take_over;
  options.is_launched = plan.launch != nullptr;
  options.grace_ms = int64_t{1000} * job.cluster().grace_s();
  options.more_for_workers_ms = std::max<int64_t>(0, leave_ms_of(job) - kUsualLeaveMs);
  // After it signals are held: the end is told whole, and its code is the run's.
  const RunEnd end = Supervisor(options, reporter).run(signals);
  reporter.passing("");
  tell_trace(job, dir);
  keep_resolved(job, dir, reporter);
  dir.sweep();
  return tell_end(end, dir, plan.again);
}

}  // namespace

int run_in(RunDir& dir, const RunPlan& plan, const wire::JobSpec& job, StopSignals& signals,
           Reporter& reporter) {
  const auto refused = [&](const Status& why) {
    reporter.passing("");
    dir.discard();
    return report(why);
  };
  if (plan.take_over) {
    remove_endpoints(dir);
    reporter.note("the run in " + dir.path() + " goes on: starting its coordinator again here");
    return supervise(plan, job, dir, signals, reporter);
  }
  const auto service = metadata_service();
  if (!service.is_ok()) return refused(service.status());
  if (const Status stays = check_machine_stays(*service); !stays.is_ok()) return refused(stays);
  // Also of the agent that is started here; agents elsewhere look there.
  if (const auto library = allocator_library(job.cluster().malloc()); !library.is_ok())
    return refused(library.status());
  if (const Status python = check_worker(job, plan); !python.is_ok()) return refused(python);
  const SystemClock clock;
  const auto progress = [&](const std::string& text) {
    reporter.passing(text);
    if (plan.launch != nullptr) plan.launch->still_preparing(clock.monotonic_ms());
  };
  const auto data = prepare_run(dir, job, plan.resume, signals, progress);
  if (!data.is_ok()) return refused(data.status());
  if (plan.from_checkpoint == kBestCheckpoint) {
    // Before anything leaves the lineage.
    const auto check = check_resume(dir.path(), job, data->facts);
    if (!check.is_ok()) return refused(check.status());
    const auto best = go_back_to_best(dir.path(), job);
    if (!best.is_ok()) return refused(best.status());
    const std::string what =
        best->lost == 0 ? "its best checkpoint, " + best->checkpoint
                        : "checkpoint " + best->checkpoint + " and makes that of its best " +
                              "evaluation again, after step " + std::to_string(best->lost) +
                              ", which is not there";
    reporter.note("the run goes on from " + what + "; what came after " + best->checkpoint +
                  " leaves the run");
  } else if (!plan.from_checkpoint.empty()) {
    const Status rebuilt = rebuild_from(dir.path(), plan.from_checkpoint, job, data->facts);
    if (!rebuilt.is_ok()) return refused(rebuilt);
    reporter.note("the journal is rebuilt from checkpoint " + plan.from_checkpoint +
                  "; what is left of the old one is kept beside it");
  }
  if (plan.resume) {
    const auto check = check_resume(dir.path(), job, data->facts);
    if (!check.is_ok()) return refused(check.status());
    if (check->is_done) return tell_done_already(dir, job);
  }
  const std::string rate = plan.resume ? rate_change_on_resume(dir.path(), job, data->facts) : "";
  Status written = write_run_files(dir, job, data->facts);
  if (written.is_ok() && plan.launch != nullptr) written = plan.launch->running();
  if (!written.is_ok()) return refused(written);
  reporter.note(opening(dir, job, *data));
  if (!rate.empty()) reporter.note(rate);
  if (job.train().global_batch() == 0) reporter.await_batch();
  return supervise(plan, job, dir, signals, reporter);
}

}  // namespace lockstep
