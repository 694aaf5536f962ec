#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "comm/base/log.h"
#include "comm/rpc/auth.h"
#include "deploy/agent/agent.h"
#include "deploy/agent/process.h"
#include "deploy/agent/run_files.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/console.h"

namespace lockstep {
namespace {

struct AgentArguments {
  std::string run_dir;
  std::string node;
  uint32_t workers = 0;  // 0: as the job says
};

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

Result<int> run_agent(const AgentArguments& arguments) {
  const std::string run_dir = std::filesystem::absolute(arguments.run_dir).string();
  const auto job = read_job_spec(run_dir);
  if (!job.is_ok()) return job.status().with_context("no run is prepared in " + run_dir);
  AgentOptions options;
  options.run_dir = run_dir;
  options.node = arguments.node.empty() ? host_name() : arguments.node;
  options.workers = arguments.workers > 0 ? arguments.workers : job->cluster().workers();
  options.grace_ms = int64_t{1000} * job->cluster().grace_s();
  options.max_crashes = job->cluster().max_crashes();
  options.max_preemptions = job->cluster().max_preemptions();
  options.worker_program = sibling_program("lockstep-worker");
  LOCKSTEP_ASSIGN_OR_RETURN(options.token, rpc::read_token_file(run_dir + "/token"));
  std::filesystem::create_directories(run_dir + "/logs");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Logger> logger,
                            open_json_logger(run_dir + "/logs/agent.log.jsonl", "agent", true));
  Agent agent(std::move(options), *logger);
  return agent.run();
}

constexpr char kExamples[] =
    "Started by 'lockstep run' and by launchers; starts the workers of this node and outlives "
    "them.\n"
    "Example:\n"
    "  lockstep agent --run-dir runs/first --workers 2";

}  // namespace

void add_agent_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("agent", "Start and watch the workers of one node");
  const auto arguments = std::make_shared<AgentArguments>();
  command->add_option("--run-dir,-d", arguments->run_dir, "Of a run that is prepared")->required();
  command->add_option("--workers,-n", arguments->workers, "Workers here; default: as the job says")
      ->check(CLI::Range(1u, 65'536u));
  command->add_option("--node", arguments->node, "Name of this node; default: the host name");
  command->footer(kExamples);
  commands[command] = [arguments] {
    const auto code = run_agent(*arguments);
    return code.is_ok() ? *code : report(code.status());
  };
}

}  // namespace lockstep
