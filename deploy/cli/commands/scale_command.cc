// `lockstep scale` and `lockstep drain`: other workers for a run that goes on.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "comm/base/clock.h"
#include "comm/base/limits.h"
#include "comm/environment/standard_streams.h"
#include "comm/run/directory/run_files.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/local_processes.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/tell_run.h"

namespace lockstep {
namespace {

constexpr int kLocalPollMs = 50;

struct ScaleArguments {
  std::string run_dir;
  uint32_t workers = 0;
};

struct DrainArguments {
  std::string run_dir;
  std::string node;
  uint64_t member = 0;
  bool is_local = false;
};

// Waits until the workers are gone from here, or the job's grace time is over: the user takes the
// machine away afterwards. A run that can spare no worker ends, and its agents here with it.
int wait_until_gone(const std::string& run_dir) {
  const auto job = read_job_spec(run_dir);
  if (!job.is_ok()) return report(job.status());
  const bool ends = job->cluster().min_workers() >= job->cluster().workers();
  const SystemClock clock;
  const int64_t until_ms = clock.monotonic_ms() + int64_t{1000} * job->cluster().grace_s();
  while (true) {
    const LocalProcesses left = local_processes(run_dir);
    if (left.nodes.empty() && (!ends || left.agents == 0)) return 0;
    if (clock.monotonic_ms() >= until_ms)
      return report(Status(
          Code::kInternal,
          "workers of the run in " + run_dir + " are still on this machine after cluster.grace_s"));
    std::this_thread::sleep_for(std::chrono::milliseconds(kLocalPollMs));
  }
}

// Does nothing for a run that is over or has no worker here.
int drain_local(const std::string& given) {
  std::error_code error;
  const std::string run_dir = std::filesystem::canonical(given, error).string();
  if (error) return report(Status(Code::kNoInput, "there is no run directory " + given));
  const auto nodes = local_processes(run_dir).nodes;
  if (nodes.empty()) {
    print_text("no worker of the run in %s is on this machine\n", given.c_str());
    return 0;
  }
  for (const std::string& node : nodes) {
    wire::Command message;
    message.set_drain_node(node);
    const int code = tell_run(run_dir, message);
    if (code != 0 && code != kNotRunning && !local_processes(run_dir).nodes.empty()) return code;
  }
  return wait_until_gone(run_dir);
}

}  // namespace

void add_scale_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("scale", "Give a live run more or fewer workers");
  const auto arguments = std::make_shared<ScaleArguments>();
  command->add_option("--run-dir,-d,run_dir", arguments->run_dir, "Run directory")->required();
  command->add_option("--workers,-n,workers", arguments->workers, "Number of workers from now on")
      ->required()
      ->check(CLI::Range(size_t{1}, limits::kMembers));
  command->footer(
      "Training continues, and the results stay the same: the workers switch together between two\n"
      "steps. At most train.slots workers have work.\n"
      "Examples:\n"
      "  lockstep scale runs/first 4\n"
      "  lockstep scale --run-dir runs/first --workers 1\n"
      "\n"
      "Exit codes: 0 accepted, 3 not running, 64 impossible, 66 no run there.");
  commands[command] = [arguments] {
    wire::Command message;
    message.set_scale_to(arguments->workers);
    return tell_run(arguments->run_dir, message);
  };
}

void add_drain_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("drain", "Take workers out of a live run");
  const auto arguments = std::make_shared<DrainArguments>();
  command->add_option("--run-dir,-d,run_dir", arguments->run_dir, "Run directory")->required();
  auto* which = command->add_option_group("which");
  which->add_option("--node", arguments->node, "All workers of this node");
  which->add_option("--member", arguments->member, "The worker with this member number")
      ->check(CLI::PositiveNumber);
  which->add_flag("--local", arguments->is_local,
                  "All workers on this machine or in this container; waits until they are gone, "
                  "for cluster.grace_s at most");
  which->require_option(1);
  command->footer(
      "Workers leave between two steps, and none of their work is lost. 'lockstep status' shows "
      "nodes\n"
      "and member numbers.\n"
      "Examples:\n"
      "  lockstep drain runs/first --node gpu17\n"
      "  lockstep drain runs/first --member 3\n"
      "  lockstep drain --run-dir /runs/first --local   # before this machine is taken away\n"
      "\n"
      "Exit codes: 0 accepted, 3 not running, 64 impossible, 66 no run there.");
  commands[command] = [arguments] {
    if (arguments->is_local) return drain_local(arguments->run_dir);
    wire::Command message;
    if (arguments->member != 0)
      message.set_drain_member(arguments->member);
    else
      message.set_drain_node(arguments->node);
    return tell_run(arguments->run_dir, message);
  };
}

}  // namespace lockstep
