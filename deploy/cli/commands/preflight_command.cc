#include <cstdlib>
#include <filesystem>
#include <memory>

#include "comm/base/host_name.h"
#include "deploy/agent/launch_env.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/job_words.h"
#include "deploy/cli/run/load_job.h"
#include "deploy/preflight/preflight.h"

namespace lockstep {
namespace {

struct PreflightArguments {
  std::vector<std::string> positional;
  std::string run_dir;
  uint32_t wait_s = 60;
};

Result<int> run_preflight(const PreflightArguments& arguments) {
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  LOCKSTEP_ASSIGN_OR_RETURN(const LaunchEnv env, read_launch_env(variable));
  JobRequest request;
  LOCKSTEP_RETURN_IF_ERROR(split_arguments(arguments.positional, request));
  if (request.file.empty())
    return Status(Code::kUsage,
                  "no job file given; try 'lockstep preflight JOB.yaml --run-dir DIR'");
  if (env.is_launched()) {
    request.launched_workers = env.ranks_with_workers() * env.workers.value_or(1);
    request.launcher = env.launcher;
    request.mpi_ranks = env.mpi_ranks;
    if (env.own_gpus > 0) request.gpu_views = env.size;
  }
  preflight::PreflightOptions options;
  LOCKSTEP_ASSIGN_OR_RETURN(options.job, load_job(request));
  options.run_dir = std::filesystem::absolute(arguments.run_dir).lexically_normal().string();
  options.launch_id = env.launch_id;
  options.rank = env.rank;
  options.size = env.size;
  options.host = host_name();
  options.version = version_line();
  options.wait_ms = int64_t{1000} * arguments.wait_s;
  return preflight::run(options);
}

constexpr char kPreflightExamples[] =
    "Start it like the run: with its launcher, job file and run directory. It checks that all "
    "hosts\n"
    "see the run directory and can lock files there, reach each other (name, route, port,\n"
    "certificate, token), have one version of Lockstep, and agree about the time. It leaves\n"
    "nothing.\n"
    "Exit codes: 0 ready, 78 not ready (it says why).\n"
    "Examples:\n"
    "  mpirun -np 4 lockstep preflight job.yaml --run-dir runs/first\n"
    "  srun --nodes 4 --ntasks-per-node 1 lockstep preflight job.yaml --run-dir runs/first";

}  // namespace

void add_preflight_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("preflight", "Check that a run can work on these hosts");
  const auto arguments = std::make_shared<PreflightArguments>();
  add_job_words(*command,
                "JOB.yaml or SCRIPT.py, and overrides of its keys: comm.network=10.2.0.0/16",
                arguments->positional);
  command->add_option("--run-dir,-d", arguments->run_dir, "Run directory, which all ranks must see")
      ->required();
  command
      ->add_option("--wait", arguments->wait_s,
                   "Seconds until a silent rank counts as missing; default 60")
      ->check(CLI::Range(1u, 3'600u));
  command->footer(kPreflightExamples);
  commands[command] = [arguments] {
    const auto code = run_preflight(*arguments);
    return code.is_ok() ? *code : report(code.status());
  };
}

}  // namespace lockstep
