// `lockstep stop`: the end of a live run, with a checkpoint to go on from.
#include <chrono>
#include <memory>
#include <thread>

#include "comm/base/clock.h"
#include "comm/base/text/shell_word.h"
#include "comm/environment/standard_streams.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/directory/run_lock.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/tell_run.h"
#include "deploy/cli/watch/run_source.h"
#include "deploy/cli/watch/run_summary.h"

namespace lockstep {
namespace {

constexpr int kPollMs = 100;
constexpr int64_t kLeaveMs = 30'000;  // after cluster.grace_s, for agents and launcher

struct StopArguments {
  std::string run_dir;
  bool no_wait = false;
};

int tell_stopped_run(const nlohmann::json& summary, const std::string& run_dir) {
  const std::string steps = grouped(summary.value("steps", uint64_t{0}));
  const int code = summary.value("exit_code", 0);
  if (code != 75) {
    print_text("the run ended by itself after %s steps, with code %d\n", steps.c_str(), code);
    return 0;
  }
  if (const std::string name = summary.value("checkpoint", ""); !name.empty())
    print_text("stopped after %s steps with checkpoint %s\n", steps.c_str(), name.c_str());
  else
    print_text("stopped without a checkpoint\n");
  print_text("continue it with: lockstep run --resume --run-dir %s\n", shell_word(run_dir).c_str());
  return 0;
}

// The coordinator writes the summary at the end; then its launcher, if it is on this machine, has
// its own end to tell.
int wait_until_stopped(const std::string& run_dir) {
  const auto job = read_job_spec(run_dir);
  if (!job.is_ok()) return report(job.status());
  const auto path = absolute_path(run_dir);
  if (!path.is_ok()) return report(path.status());
  const SystemClock clock;
  const int64_t until_ms =
      clock.monotonic_ms() + int64_t{1000} * job->cluster().grace_s() + kLeaveMs;
  while (clock.monotonic_ms() < until_ms) {
    const auto summary = read_summary(*path);
    if (summary.is_ok() && !is_held(*path)) return tell_stopped_run(*summary, run_dir);
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
  }
  return report(Status(Code::kTimeout,
                       "the run in " + run_dir +
                           " still stops, longer than cluster.grace_s; see 'lockstep status " +
                           shell_word(run_dir) + "'"));
}

}  // namespace

void add_stop_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("stop", "End a live run with a checkpoint");
  const auto arguments = std::make_shared<StopArguments>();
  command->add_option("--run-dir,-d,run_dir", arguments->run_dir, "Run directory")->required();
  command->add_flag("--no-wait", arguments->no_wait, "Return as soon as the run has been told");
  command->footer(
      "The workers write a checkpoint at the next step boundary and leave; 'lockstep run "
      "--resume'\n"
      "goes on from there. What starts a stopped run again by itself (Slurm, Kubernetes) does so\n"
      "here, too: end the job there, with scancel or kubectl delete.\n"
      "Examples:\n"
      "  lockstep stop runs/first\n"
      "  lockstep stop runs/first --no-wait\n"
      "\n"
      "Exit codes: 0 stopped, 3 not running, 66 no run there, 70 still stopping.");
  commands[command] = [arguments] {
    wire::Command message;
    message.set_stop(true);
    const int code = tell_run(arguments->run_dir, message);
    if (code != 0 || arguments->no_wait) return code;
    return wait_until_stopped(arguments->run_dir);
  };
}

}  // namespace lockstep
