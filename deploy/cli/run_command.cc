#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "comm/base/clock.h"
#include "comm/base/file.h"
#include "comm/rpc/auth.h"
#include "deploy/agent/run_files.h"
#include "deploy/cli/check_resume.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/console.h"
#include "deploy/cli/job_print.h"
#include "deploy/cli/load_job.h"
#include "deploy/cli/merge_traces.h"
#include "deploy/cli/prepare_data.h"
#include "deploy/cli/reporter.h"
#include "deploy/cli/run_dir.h"
#include "deploy/cli/run_summary.h"
#include "deploy/cli/same_run.h"
#include "deploy/cli/stop_signals.h"
#include "deploy/cli/supervisor.h"
#include "deploy/cli/text.h"
#include "worker/checkpoint/store.h"

namespace lockstep {
namespace {

struct RunArguments {
  std::vector<std::string> positional;
  std::string workers;
  std::string run_dir;
  std::string trace;
  bool resume = false;
  bool print_config = false;
  bool help_job = false;
};

// "steps=10:20" is train.trace with its unit in front, as --trace names what is traced.
Status add_trace(const std::string& trace, JobRequest& request) {
  constexpr std::string_view kSteps = "steps=";
  if (trace.empty()) return Status::ok();
  if (!trace.starts_with(kSteps))
    return Status(Code::kUsage,
                  "--trace is \"" + trace + "\" but must name steps, as in steps=10:20");
  request.overrides.push_back("train.trace=" + trace.substr(kSteps.size()));
  return Status::ok();
}

// The job, from the command line and, on a resume, from what the run directory holds.
Result<wire::JobSpec> job_of(const RunArguments& arguments) {
  JobRequest request;
  LOCKSTEP_RETURN_IF_ERROR(split_arguments(arguments.positional, request));
  request.workers = arguments.workers;
  LOCKSTEP_RETURN_IF_ERROR(add_trace(arguments.trace, request));
  if (!arguments.resume) return load_job(request);
  if (arguments.run_dir.empty())
    return Status(Code::kUsage, "--resume needs --run-dir, the directory of the run to continue");
  const auto stored = read_job_spec(arguments.run_dir);
  if (stored.status().code() == Code::kNoInput)
    return Status(Code::kNoInput, "there is no run to resume in " + arguments.run_dir +
                                      "; start one without --resume");
  LOCKSTEP_RETURN_IF_ERROR(stored.status());
  const std::string kept = arguments.run_dir + "/job.yaml";
  if (request.file.empty() && std::filesystem::exists(kept)) request.file = kept;
  request.stored = &*stored;
  return load_job(request);
}

void remove_file(const RunDir& dir, const char* name) {
  std::error_code ignored;
  std::filesystem::remove(dir.file(name), ignored);
}

// Everything that coordinator, agent and workers read, before any of them is started.
Status write_run_files(const RunDir& dir, const wire::JobSpec& job, const wire::DataFacts& facts) {
  // What an earlier start left would be taken for this one's.
  remove_file(dir, "coordinator.json");
  remove_file(dir, "summary.json");
  LOCKSTEP_RETURN_IF_ERROR(rpc::create_token_file(dir.file("token")).status());
  LOCKSTEP_RETURN_IF_ERROR(replace_file(dir.file("job.yaml"), job_yaml(job)));
  LOCKSTEP_RETURN_IF_ERROR(write_message(dir.file("facts.pb"), facts));
  return write_message(dir.file("job.pb"), job);
}

// Comes out of the middle of reading data, where only an exception can.
struct StoppedEarly {};

Result<PreparedData> read_data(const RunDir& dir, const wire::JobSpec& job,
                               const StopSignals& signals, Reporter& reporter) {
  const auto progress = [&](const std::string& text) {
    reporter.passing(text);
    if (signals.is_pending()) throw StoppedEarly();
  };
  const Status stopped(Code::kCheckpointed, "stopped before the run began; nothing was changed");
  try {
    auto data = prepare_data(job, dir.path(), progress);
    if (data.is_ok() && signals.is_pending()) return stopped;
    return data;
  } catch (const StoppedEarly&) {
    return stopped;
  }
}

Result<PreparedData> prepare(const RunDir& dir, const wire::JobSpec& job, bool resume,
                             const StopSignals& signals, Reporter& reporter) {
  LOCKSTEP_ASSIGN_OR_RETURN(PreparedData data, read_data(dir, job, signals, reporter));
  if (!resume) return data;
  const auto stored = read_data_facts(dir.path());
  if (stored.status().code() == Code::kNoInput) return data;  // it never got as far
  LOCKSTEP_RETURN_IF_ERROR(stored.status());
  LOCKSTEP_RETURN_IF_ERROR(check_same_data(*stored, data.facts));
  return data;
}

std::string opening(const RunDir& dir, const wire::JobSpec& job, const PreparedData& data) {
  const auto& train = job.train();
  std::string length = train.epochs() > 0 ? plural(train.epochs(), "epoch") : "";
  if (train.max_steps() > 0)
    length += (length.empty() ? "" : ", at most ") + plural(train.max_steps(), "step");
  return job.job() + ": " + job.model().name() + " on " + data.description + "\n" +
         plural(job.cluster().workers(), "worker") + ", global batch " +
         (train.global_batch() == 0 ? "auto" : grouped(train.global_batch())) + " in " +
         plural(train.slots(), "slot") + ", " + length + ", " + job.optimizer().name() + ", " +
         job.comm().numerics() + " numerics\n" + "run directory " + dir.path();
}

bool has_checkpoint(const RunDir& dir) {
  const auto checkpoints = list_checkpoints(dir.file("checkpoints"));
  return checkpoints.is_ok() && !checkpoints->empty();
}

bool has_steps(const RunDir& dir) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(dir.file("history.jsonl"), error);
  return (!error && bytes > 0) || has_checkpoint(dir);
}

void tell_stopped(RunDir& dir, const std::string& resume) {
  if (has_checkpoint(dir)) {
    std::printf("stopped with a checkpoint; continue with: %s\n", resume.c_str());
  } else if (has_steps(dir)) {
    std::printf("stopped without a checkpoint; begin again with: %s\n", resume.c_str());
  } else if (dir.discard()) {
    std::printf("stopped before the first step; nothing was kept, begin again as before\n");
  } else {
    std::printf("stopped before the first step; begin again with: %s\n", resume.c_str());
  }
}

// A generation has trained. What it computed may be cut from the history, where samples did harm,
// and is looked into all the same (lockstep replay).
bool has_trained(const RunDir& dir) {
  const auto summary = read_summary(dir.path());
  return has_steps(dir) || (summary.is_ok() && summary->value("generations", 0) > 0);
}

// Where something went wrong before any training there is nothing to go on from or to look into.
void tell_failed(int code, RunDir& dir) {
  constexpr int kFailed = 70;  // its logs are wanted
  if (code != kFailed && !has_trained(dir) && dir.discard())
    std::fprintf(stderr, "lockstep: ended with code %d; %s, which was new, is removed again\n",
                 code, dir.path().c_str());
  else
    std::fprintf(stderr, "lockstep: ended with code %d; logs are in %s\n", code,
                 dir.file("logs").c_str());
}

int tell_end(const RunEnd& end, RunDir& dir) {
  const std::string resume = "lockstep run --resume --run-dir " + dir.path();
  const auto summary = read_summary(dir.path());
  if (end.exit_code == 0 && summary.is_ok())
    std::printf("\ndone\n%s%s", summary_table(*summary, dir.path()).c_str(),
                next_commands(dir.path()).c_str());
  else if (end.exit_code == 75)
    tell_stopped(dir, resume);
  std::fflush(stdout);
  if (!end.trouble.empty()) {  // else the coordinator has said what happened and what to do
    std::fprintf(stderr, "lockstep: %s\n", end.trouble.c_str());
    if (end.exit_code == 70)
      std::fprintf(stderr, "lockstep: continue from the last checkpoint with: %s\n",
                   resume.c_str());
  }
  if (end.exit_code != 0 && end.exit_code != 75) tell_failed(end.exit_code, dir);
  return end.exit_code;
}

// Of a run that has nothing left to do: what it came to, untouched.
int tell_done_already(const RunDir& dir) {
  const auto summary = read_summary(dir.path());
  if (!summary.is_ok()) return report(summary.status());
  std::printf("this run is done already\n%s%s", summary_table(*summary, dir.path()).c_str(),
              next_commands(dir.path()).c_str());
  return 0;
}

void tell_trace(const wire::JobSpec& job, const RunDir& dir) {
  if (job.train().trace().empty()) return;
  const auto merged = merge_traces(dir.path());
  if (!merged.is_ok())
    std::fprintf(stderr, "lockstep: traces not merged: %s\n", merged.status().message().c_str());
  else if (!merged->empty())
    std::printf("trace of steps %s: %s (open it in ui.perfetto.dev)\n", job.train().trace().c_str(),
                merged->c_str());
}

// A reader of job.yaml wants to know what train.global_batch auto became; job.pb says it.
void keep_resolved(const wire::JobSpec& job, const RunDir& dir) {
  if (job.train().global_batch() != 0) return;
  const auto resolved = read_job_spec(dir.path());
  if (!resolved.is_ok() || resolved->train().global_batch() == 0) return;
  const Status kept = replace_file(dir.file("job.yaml"), job_yaml(*resolved));
  if (!kept.is_ok()) std::fprintf(stderr, "lockstep: %s\n", kept.message().c_str());
}

int supervise(const RunArguments& arguments, const wire::JobSpec& job, RunDir& dir,
              StopSignals& signals, Reporter& reporter) {
  SupervisorOptions options;
  options.run_dir = dir.path();
  options.workers = job.cluster().workers();
  options.resume = arguments.resume;
  options.grace_ms = int64_t{1000} * job.cluster().grace_s();
  RunEnd end;
  {
    Supervisor supervisor(options, reporter);
    end = supervisor.run(signals);
  }
  reporter.passing("");
  tell_trace(job, dir);
  keep_resolved(job, dir);
  dir.sweep();
  return tell_end(end, dir);
}

int run_in(RunDir& dir, const RunArguments& arguments, const wire::JobSpec& job,
           StopSignals& signals) {
  Reporter reporter(Screen::of_stdout());
  const auto refused = [&](const Status& why) {
    reporter.passing("");
    dir.discard();
    return report(why);
  };
  const auto data = prepare(dir, job, arguments.resume, signals, reporter);
  if (!data.is_ok()) return refused(data.status());
  if (arguments.resume) {
    const auto check = check_resume(dir.path(), job, data->facts);
    if (!check.is_ok()) return refused(check.status());
    if (check->is_done) return tell_done_already(dir);
  }
  const Status written = write_run_files(dir, job, data->facts);
  if (!written.is_ok()) return refused(written);
  reporter.note(opening(dir, job, *data));
  return supervise(arguments, job, dir, signals, reporter);
}

int run_job(const RunArguments& arguments) {
  StopSignals signals;
  const auto job = job_of(arguments);
  if (!job.is_ok()) return report(job.status());
  if (arguments.print_config) {
    std::fputs(job_yaml(*job).c_str(), stdout);
    return 0;
  }
  const std::string path = arguments.run_dir.empty()
                               ? default_run_dir(job->job(), SystemClock().wall_ms())
                               : arguments.run_dir;
  auto dir = RunDir::open(path, arguments.resume);
  if (!dir.is_ok()) return report(dir.status());
  return run_in(*dir, arguments, *job, signals);
}

constexpr char kExamples[] =
    "Examples:\n"
    "  lockstep run job.yaml\n"
    "  lockstep run job.yaml --workers 4 --run-dir runs/first train.epochs=3 optimizer.lr=2e-3\n"
    "  lockstep run --resume --run-dir runs/first train.epochs=10 --workers 2\n"
    "  lockstep run job.yaml --print-config\n"
    "  lockstep run --help-job\n"
    "\n"
    "Exit codes: 0 done, 64 bad usage or job file, 65 bad data, 66 data not found, 70 failed,\n"
    "75 stopped (run again with --resume), 78 cannot work on this machine.";

}  // namespace

void add_run_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("run", "Train: one job, from its file to its results");
  const auto arguments = std::make_shared<RunArguments>();
  command->add_option("job", arguments->positional,
                      "JOB.yaml, and overrides of its keys: train.epochs=3");
  command->add_option("--workers,-n", arguments->workers, "Worker processes (cluster.workers)");
  command->add_option("--run-dir,-d", arguments->run_dir,
                      "Where everything of the run goes; default runs/<job>-<time>");
  command->add_option("--trace", arguments->trace,
                      "Timeline of some steps, into RUN_DIR/trace: steps=10:20");
  command->add_flag("--resume", arguments->resume,
                    "Continue the run in --run-dir; what is not said stays as it was");
  command->add_flag("--print-config", arguments->print_config,
                    "Print the job as resolved, and end");
  command->add_flag("--help-job", arguments->help_job, "Print all keys of a job file, and end");
  command->footer(kExamples);
  commands[command] = [arguments] {
    if (!arguments->help_job) return run_job(*arguments);
    std::fputs(job_help().c_str(), stdout);
    return 0;
  };
}

}  // namespace lockstep
