#include "deploy/cli/run/launched_agent.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "comm/base/clock.h"
#include "comm/base/host_name.h"
#include "comm/base/prng.h"
#include "comm/environment/standard_streams.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "deploy/agent/launch_record.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/run/check_resume.h"
#include "deploy/cli/run/launcher_watch.h"
#include "deploy/cli/run/load_job.h"
#include "deploy/cli/run/node_agent.h"
#include "deploy/cli/run/own_run_dir.h"
#include "deploy/cli/run/run_in_directory.h"

namespace lockstep {
namespace {

constexpr int kStopped = 75;
constexpr int64_t kStopDelayMs = 500;     // every rank gets the signal; the coordinator acts on it
constexpr int64_t kLeftOverMs = 15'000;   // beyond its grace time, for a coordinator without parent
constexpr int64_t kLostNodeMs = 120'000;  // for a network file system to drop its locks
constexpr int64_t kLastWordMs = 60'000;   // from the coordinator's goodbye to rank 0's end

uint32_t workers_of(const LaunchedAgent& arguments, const LaunchEnv& env) {
  return arguments.workers > 0 ? arguments.workers : env.workers.value_or(1);
}

// An agent speaks for its node to the coordinator, so where several are on one host each takes a
// part of it for its own.
std::string node_of(const LaunchedAgent& arguments, const LaunchEnv& env) {
  if (env.size == 1 || (env.local_rank && env.local_size == 1)) return arguments.node;
  return arguments.node + ":" + std::to_string(env.local_rank.value_or(env.rank));
}

// Rank 0 of this launch was here before: it died, or was stopped.
std::optional<LaunchState> state_before(const std::string& run_dir, const LaunchEnv& env) {
  const auto record = read_launch_record(run_dir, env.launch_id);
  if (!env.are_ranks_made_again || !record || record->launch_id != env.launch_id)
    return std::nullopt;
  return record->state;
}

// Local ranks are numbers of their own there, which name the logs of workers.
bool is_on_one_host(const LaunchEnv& env) {
  return env.size == 1 || (env.local_rank && env.local_size == env.size);
}

void pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(kLaunchPollMs));
}

// For ranks that may be a thousand, on one network file system: each look opens files. The pauses
// grow, up to kLaunchPollMostMs, and differ by rank.
class LookPause {
 public:
  explicit LookPause(uint32_t rank)
      : jitter_(stream_key({rank, static_cast<uint64_t>(::getpid())})) {}
  void wait() {
    std::this_thread::sleep_for(std::chrono::milliseconds(look_pause_ms(looks_++, jitter_)));
  }

 private:
  uint32_t looks_ = 0;
  Prng jitter_;
};

// ---- rank 0 ----

// A launcher that begins again as soon as it has killed a launch finds the coordinator of that one
// still waiting for the workers' checkpoint.
void wait_for_left_over(const std::string& run_dir, int64_t most_ms, const StopSignals& signals) {
  if (!is_being_left(run_dir)) return;
  print_text("waiting for the coordinator of an earlier launch to end\n");
  std::fflush(stdout);
  const SystemClock clock;
  const int64_t until_ms = clock.monotonic_ms() + most_ms;
  while (is_being_left(run_dir) && clock.monotonic_ms() < until_ms && !signals.is_pending())
    pause();
}

// The rank 0 before, whose pod is gone with its node, may hold its locks for a while yet. No other
// run has the same launch, so the directory belongs to no other run.
Result<RunDir> open_after_own_death(const std::string& run_dir, int64_t most_ms,
                                    const StopSignals& signals) {
  const SystemClock clock;
  const int64_t until_ms = clock.monotonic_ms() + most_ms + kLostNodeMs;
  while (is_in_use(run_dir) && clock.monotonic_ms() < until_ms && !signals.is_pending()) pause();
  if (!is_in_use(run_dir)) return RunDir::open(run_dir, holds_a_run(run_dir));
  return Status(Code::kCheckpointed,
                "an earlier rank 0 of this launch still holds " + run_dir + "; start rank 0 again");
}

bool is_alone(const LaunchedAgent& arguments, const LaunchEnv& env) {
  return !env.is_launched() && arguments.workers == 0;
}

Result<wire::JobSpec> job_of(const LaunchedAgent& arguments, const LaunchEnv& env, bool resume) {
  JobRequest request;
  LOCKSTEP_RETURN_IF_ERROR(split_arguments(arguments.positional, request));
  if (request.file.empty())
    return Status(Code::kUsage, "no job file given; try 'lockstep agent JOB.yaml --run-dir DIR'");
  if (!is_alone(arguments, env)) {
    request.launched_workers = env.ranks_with_workers() * workers_of(arguments, env);
    request.launcher = env.launcher;
    request.mpi_ranks = env.mpi_ranks;
    if (env.own_gpus > 0) request.gpu_views = env.size;
  }
  if (!resume) return load_job(request);
  const auto stored = stored_job(arguments.run_dir);
  const Code code = stored.status().code();
  if (!stored.is_ok() && code != Code::kNoInput && code != Code::kBadData) return stored;
  if (stored.is_ok())
    request.stored = &*stored;  // else the journal compares what identifies the run
  auto job = load_job(request);
  if (job.is_ok()) return job;
  return job.status().with_context("the run in " + arguments.run_dir + " cannot be continued");
}

// None: a coordinator alone.
std::vector<std::string> agent_words(const LaunchedAgent& arguments, const LaunchEnv& env,
                                     const wire::JobSpec& job) {
  if (!env.leader_keeps_workers) return {};
  const uint32_t workers =
      is_alone(arguments, env) ? job.cluster().workers() : workers_of(arguments, env);
  std::vector<std::string> words = {"--workers",     std::to_string(workers),
                                    "--node",        node_of(arguments, env),
                                    "--local-rank",  std::to_string(env.local_rank.value_or(0)),
                                    "--agents-here", std::to_string(env.local_size),
                                    "--own-gpus",    std::to_string(env.own_gpus)};
  if (is_on_one_host(env)) words.push_back("--plain-logs");
  return words;
}

Result<int> lead(const LaunchedAgent& arguments, const LaunchEnv& env, StopSignals& signals) {
  RunPlan plan;
  const auto before = state_before(arguments.run_dir, env);
  plan.resume = holds_a_run(arguments.run_dir);
  plan.again = "the same command";
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::JobSpec job, job_of(arguments, env, plan.resume));
  const int64_t leave_ms = int64_t{1000} * job.cluster().grace_s() + kLeftOverMs;
  if (!before) wait_for_left_over(arguments.run_dir, leave_ms, signals);
  LOCKSTEP_ASSIGN_OR_RETURN(RunDir dir,
                            before ? open_after_own_death(arguments.run_dir, leave_ms, signals)
                                   : RunDir::open(arguments.run_dir, plan.resume));
  plan.take_over = plan.resume && env.size > 1 && before == LaunchState::kRunning;
  // A rank that replaces this one goes on with its coordinator.
  if (env.are_ranks_made_again) plan.seat = "launch " + env.launch_id;
  plan.agent_words = agent_words(arguments, env, job);
  LaunchRecorder launch(dir.path(), env.launch_id);
  if (!env.launch_id.empty()) {
    dir.keep();
    if (!plan.take_over) LOCKSTEP_RETURN_IF_ERROR(launch.preparing());
  }
  if (env.is_launched()) plan.launch = &launch;
  Reporter reporter(env.is_launched() ? Screen::of_launched() : Screen::of_stdout());
  const int code = run_in(dir, plan, job, signals, reporter);
  std::fflush(nullptr);  // nothing is said any more
  if (!env.launch_id.empty()) LOCKSTEP_RETURN_IF_ERROR(launch.ended(code));
  return code;
}

// Tells the other ranks of an error that came before there was a record that they could see. mpirun
// ends them itself.
void tell_refused(const LaunchedAgent& arguments, const LaunchEnv& env, const Status& why) {
  if (env.size == 1 || env.launcher == "mpirun" || !may_hold_a_run(arguments.run_dir)) return;
  (void)write_launch_refusal(arguments.run_dir, env.launch_id, exit_code(why));
}

// ---- the other ranks ----

std::string rank_text(const LaunchEnv& env) {
  return "rank " + std::to_string(env.rank) + " of " + std::to_string(env.size) + " on " +
         host_name();
}

// Says what a rank waits for that has seen no run yet.
void tell_of_wait(const LaunchWait& wait, const std::string& run_dir, const LaunchEnv& env) {
  const std::string what =
      wait.record() ? "rank 0 still prepares the run in " + run_dir
                    : "nothing of rank 0 is in " + run_dir +
                          " yet. If rank 0 is at work, its host and this one see two directories "
                          "of that name: give all hosts one shared --run-dir";
  print_error("lockstep: %s waits for rank 0: %s\n", rank_text(env).c_str(), what.c_str());
}

// None: a stop signal came first.
std::optional<LaunchWait::Verdict> wait_for_run(LaunchWait& wait, const std::string& run_dir,
                                                const LaunchEnv& env, const StopSignals& signals) {
  const SystemClock clock;
  LookPause pause(env.rank);
  while (!signals.is_pending()) {
    const int64_t now_ms = clock.monotonic_ms();
    const auto verdict = wait.see(read_launch_record(run_dir, env.launch_id), now_ms);
    if (verdict != LaunchWait::Verdict::kWait) return verdict;
    if (wait.should_say(now_ms)) tell_of_wait(wait, run_dir, env);
    pause.wait();
  }
  return std::nullopt;
}

std::optional<int> code_of_run(const std::string& run_dir, const LaunchEnv& env) {
  const auto record = read_launch_record(run_dir, env.launch_id);
  if (!record || record->launch_id != env.launch_id || record->state != LaunchState::kEnded)
    return std::nullopt;
  return record->exit_code;
}

// A rank that has heard that the run is over lets rank 0 say its last word (launch_record.h, 2).
Result<int> end_with_rank_0(const NodeAgentEnd& end, const LaunchEnv& env,
                            const std::string& run_dir) {
  const SystemClock clock;
  const int64_t until_ms = clock.monotonic_ms() + (end.heard_goodbye ? kLastWordMs : 0);
  LookPause pause(env.rank);
  while (true) {
    if (const auto code = code_of_run(run_dir, env)) return *code;
    if (clock.monotonic_ms() >= until_ms) break;
    pause.wait();
  }
  // It has left a run that goes on, and its place stays: the next rank there joins.
  if (end.was_stopped && !end.heard_goodbye && end.exit_code == 0 && env.are_ranks_made_again)
    return kStopped;
  if (end.heard_goodbye || end.was_stopped || end.exit_code != 0) return end.exit_code;
  return Status(Code::kInternal,
                rank_text(env) + " lost the coordinator on rank 0, which did not come back; see " +
                    rundir::file_in(run_dir, rundir::kLogs) +
                    ", and run the same command again to continue");
}

Result<int> follow(const LaunchedAgent& arguments, const LaunchEnv& env, StopSignals& signals) {
  const std::string& run_dir = arguments.run_dir;
  LaunchWait wait(env.launch_id, SystemClock().monotonic_ms(), env.are_ranks_made_again);
  const auto verdict = wait_for_run(wait, run_dir, env, signals);
  if (!verdict) return kStopped;
  if (*verdict == LaunchWait::Verdict::kEnded) return wait.record()->exit_code;
  if (*verdict == LaunchWait::Verdict::kGiveUp)
    return Status(Code::kInternal,
                  rank_text(env) + " has waited " + std::to_string(kLaunchSilenceMs / 1000) +
                      " s for rank 0 to prepare the run in " + run_dir +
                      ": see rank 0's output, and check that all hosts share this directory");
  NodeAgent node;
  node.run_dir = run_dir;
  node.node = node_of(arguments, env);
  node.workers = workers_of(arguments, env);
  node.first_local_rank = env.local_rank.value_or(0);
  node.agents_here = env.local_size;
  node.own_gpus = env.own_gpus;
  node.has_plain_logs = is_on_one_host(env);
  node.name = "agent-" + std::to_string(env.rank);
  node.is_quiet = true;
  node.stop_delay_ms = kStopDelayMs;
  LOCKSTEP_ASSIGN_OR_RETURN(const NodeAgentEnd end, run_node_agent(node, &signals));
  return end_with_rank_0(end, env, run_dir);
}

}  // namespace

Result<int> run_launched(const LaunchedAgent& given, const LaunchEnv& env) {
  StopSignals signals;
  const LauncherWatch watch(env.is_launched() ? launching_process() : 0, [&env] {
    print_error(
        "lockstep: the launcher of rank %u was killed; this rank stops, and the run with it\n",
        env.rank);
  });
  LaunchedAgent arguments = given;
  arguments.run_dir = std::filesystem::absolute(given.run_dir).lexically_normal().string();
  if (env.rank != 0) return follow(arguments, env, signals);
  auto code = lead(arguments, env, signals);
  if (!code.is_ok()) tell_refused(arguments, env, code.status());
  return code;
}

}  // namespace lockstep
