#include <cstdlib>
#include <filesystem>
#include <memory>

#include "deploy/agent/launch_env.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/job_words.h"
#include "deploy/cli/run/launched_agent.h"
#include "deploy/cli/run/node_agent.h"

namespace lockstep {
namespace {

struct AgentArguments {
  std::vector<std::string> positional;
  std::string run_dir;
  std::string node;
  uint32_t workers = 0;  // 0: as the job or the launcher says
  uint32_t local_rank = 0;
  uint32_t agents_here = 1;
  uint32_t own_gpus = 0;
  bool has_plain_logs = false;
  bool is_supervised = false;
};

const char* variable(const char* name) {
  return std::getenv(name);
}

Result<int> run_prepared(const AgentArguments& arguments) {
  NodeAgent node;
  node.run_dir = std::filesystem::absolute(arguments.run_dir).string();
  node.node = arguments.node.empty() ? node_name(variable) : arguments.node;
  node.workers = arguments.workers;
  node.first_local_rank = arguments.local_rank;
  node.agents_here = arguments.agents_here;
  node.own_gpus = arguments.own_gpus;
  node.has_plain_logs = arguments.has_plain_logs;
  node.is_supervised = arguments.is_supervised;
  LOCKSTEP_ASSIGN_OR_RETURN(const NodeAgentEnd end, run_node_agent(node, nullptr));
  return end.exit_code;
}

Result<int> run_agent(const AgentArguments& arguments) {
  if (arguments.positional.empty()) return run_prepared(arguments);
  LOCKSTEP_ASSIGN_OR_RETURN(const LaunchEnv env, read_launch_env(variable));
  const std::string node = arguments.node.empty() ? node_name(variable) : arguments.node;
  return run_launched({arguments.positional, arguments.run_dir, node, arguments.workers}, env);
}

constexpr char kAgentExamples[] =
    "With a job file, this is one rank of a run under a launcher. Rank 0 prepares the run and "
    "keeps\n"
    "the coordinator; each rank keeps one worker. The same command again continues the run in "
    "DIR.\n"
    "Without a job file, it starts and watches the workers of this node for a prepared run.\n"
    "Examples:\n"
    "  mpirun -np 4 lockstep agent job.yaml train.epochs=3 --run-dir runs/first\n"
    "  mpirun -np 4 lockstep agent train.py --run-dir runs/first -- --lr 0.1\n"
    "  mpirun -np 4 lockstep agent -m proj.train --run-dir runs/first\n"
    "  lockstep agent --run-dir runs/first --workers 2";

}  // namespace

void add_agent_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("agent", "Start and watch the workers of one node or rank");
  const auto arguments = std::make_shared<AgentArguments>();
  add_job_words(*command, kJobWords, arguments->positional);
  command->add_option("--run-dir,-d", arguments->run_dir, "Run directory, which all ranks must see")
      ->required();
  command
      ->add_option("--workers,-n", arguments->workers,
                   "Workers here; default: those of the job, with a launcher one a rank")
      ->check(CLI::Range(1u, 65'536u));
  command->add_option("--node", arguments->node,
                      "Name of this node; default: LOCKSTEP_NODE, else the host name");
  command->add_option("--local-rank", arguments->local_rank,
                      "Local rank of the first worker here, for several agents on one host");
  command
      ->add_option("--agents-here", arguments->agents_here,
                   "Agents of this run on this host, the distance between local ranks of an agent")
      ->check(CLI::Range(1u, 65'536u));
  command->add_option("--own-gpus", arguments->own_gpus,
                      "GPUs that only this agent sees; 0: all agents on this host see the same");
  command->add_flag("--plain-logs", arguments->has_plain_logs,
                    "Leave the node out of names of logs, for a run on one host");
  command
      ->add_flag(
          "--supervised", arguments->is_supervised,
          "Started by a `lockstep run` or rank 0, which has asked whether this machine stays")
      ->group("");  // not for people
  command->footer(kAgentExamples);
  commands[command] = [arguments] {
    const auto code = run_agent(*arguments);
    return code.is_ok() ? *code : report(code.status());
  };
}

}  // namespace lockstep
