#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "comm/base/file.h"
#include "comm/environment/standard_streams.h"
#include "comm/net/network.h"
#include "deploy/agent/process.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/job_words.h"
#include "deploy/cli/run/load_job.h"
#include "deploy/slurm/batch_script.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct SbatchArguments {
  std::vector<std::string> words;  // the job file, overrides; from the first "-..." on Slurm's
  std::string more;                // never set: add_options()
  std::string run_dir;
  std::string output;
  uint32_t tasks_per_node = 0;  // 0: one a GPU, without GPUs one
  bool submit = false;
  BatchRequest request;
};

std::string absolute(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

// Checks the job now: a user who hears of a mistake only after hours in the queue has lost them.
Result<wire::JobSpec> job_to_submit(const JobRequest& request, const BatchRequest& batch) {
  JobRequest job = request;
  job.launched_workers = batch.nodes * batch.tasks_per_node;
  job.launcher = "the batch script";
  job.gpus = batch.gpus_per_node > 0 ? batch.nodes * batch.gpus_per_node : job.launched_workers;
  return load_job(job);
}

// Fills in what the job and this machine say.
Result<std::string> script_of(const SbatchArguments& arguments) {
  BatchRequest batch = arguments.request;
  const auto slurms = std::find_if(arguments.words.begin(), arguments.words.end(),
                                   [](const std::string& word) { return word.starts_with("-"); });
  batch.slurm_words.assign(slurms, arguments.words.end());
  JobRequest request;
  LOCKSTEP_RETURN_IF_ERROR(split_arguments({arguments.words.begin(), slurms}, request));
  if (request.file.empty())
    return Status(Code::kUsage, "no job file given; try 'lockstep sbatch JOB.yaml --run-dir DIR'");
  batch.tasks_per_node =
      arguments.tasks_per_node > 0 ? arguments.tasks_per_node : std::max(1u, batch.gpus_per_node);
  batch.job_file = absolute(request.file);
  batch.overrides = request.overrides;
  batch.run_dir = absolute(arguments.run_dir);
  batch.working_directory = fs::current_path().string();
  batch.program = sibling_program("lockstep");
  if (!batch.array.empty())  // %a may be any number; whether the key is one shows all the same
    for (std::string& word : request.overrides)
      for (size_t at = 0; (at = word.find("%a", at)) != std::string::npos;)
        word.replace(at, 2, "1");
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::JobSpec job, job_to_submit(request, batch));
  batch.name = job.job();
  if (const std::string& network = job.comm().network();
      batch.nodes > 1 && rpc::is_of_one_machine(network))
    print_error(
        "warning: comm.network is %s, which reaches no other node; name the network that the nodes "
        "share, as in comm.network=10.2.0.0/16\n",
        network.c_str());
  return batch_script(batch);
}

// Gives sbatch's exit code; its words are its own.
Result<int> submit(const std::string& script) {
  std::fflush(nullptr);
  std::FILE* sbatch = ::popen("exec sbatch", "we");
  if (sbatch == nullptr) return Status(Code::kInternal, "cannot start a shell for sbatch");
  const bool is_written = std::fwrite(script.data(), 1, script.size(), sbatch) == script.size();
  const int status = ::pclose(sbatch);
  constexpr int kNotFound = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound)
    return Status(
        Code::kConfig,
        "there is no sbatch on this machine; without --submit, Lockstep prints the script");
  if (status != 0 || !is_written)
    return Status(Code::kConfig, "sbatch refused the job; see its message above");
  return 0;
}

Result<int> write_script(const SbatchArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string script, script_of(arguments));
  if (!arguments.output.empty())
    LOCKSTEP_RETURN_IF_ERROR(replace_file(absolute(arguments.output), script, 0755));
  if (arguments.submit) return submit(script);
  if (arguments.output.empty()) std::fputs(script.c_str(), stdout);
  return 0;
}

constexpr char kSbatchExamples[] =
    "Writes a batch script for Slurm to stdout, to --output, or with --submit to sbatch. Before "
    "its\n"
    "time is over, and on preemption, the job checkpoints and is requeued, until it is done.\n"
    "sbatch gets the arguments after --.\n"
    "Examples:\n"
    "  lockstep sbatch job.yaml --run-dir runs/first --nodes 4 --time 2:00:00 --submit\n"
    "  lockstep sbatch job.yaml --run-dir runs/first --nodes 2 --gpus-per-node 8 > first.sh\n"
    "  lockstep sbatch job.yaml seed=%a --run-dir runs/seed-%a --array 1-5 --submit\n"
    "  lockstep sbatch -m proj.train 'script.args=[--lr, 0.1]' --run-dir runs/first --submit\n"
    "  lockstep sbatch job.yaml --run-dir runs/first --submit -- --account=vision --mem=64G";

void add_batch_options(CLI::App& command, SbatchArguments& arguments) {
  BatchRequest& batch = arguments.request;
  const CLI::Range some(1u, 65'536u);
  add_job_words(command, "JOB.yaml or SCRIPT.py, and overrides of its keys: train.epochs=3",
                arguments.words);
  // CLI11 gives all words to the list above. This second place keeps the words after "--" in this
  // command.
  command.add_option("more", arguments.more, "After --: further arguments of sbatch");
  command.add_option("--run-dir,-d", arguments.run_dir, "Run directory, which all nodes must see")
      ->required();
  command.add_option("--nodes,-N", batch.nodes, "Nodes; default 1")->check(some);
  command
      .add_option("--ntasks-per-node", arguments.tasks_per_node,
                  "Agents on a node, each with one worker; default: one a GPU, else one")
      ->check(some);
  command.add_option("--gpus-per-node", batch.gpus_per_node, "GPUs on each node")->check(some);
  command.add_option("--time,-t", batch.time,
                     "Time until Slurm stops and requeues the job: 2:00:00, 1-0");
  command.add_option("--partition,-p", batch.partition, "Slurm's partition");
  command.add_option(
      "--array,-a", batch.array,
      "Several runs, such as 0-3; %a in --run-dir and overrides is the number of a run");
  command
      .add_option("--stop-before", batch.stop_before_s,
                  "Seconds before the end of its time at which the job checkpoints; "
                  "default 180")
      ->check(some);
  command.add_option("--output,-o", arguments.output, "Write the script to this file");
  command.add_flag("--submit", arguments.submit, "Give the script to sbatch");
}

}  // namespace

void add_sbatch_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("sbatch", "Write or submit a batch script for Slurm");
  const auto arguments = std::make_shared<SbatchArguments>();
  add_batch_options(*command, *arguments);
  command->footer(kSbatchExamples);
  commands[command] = [arguments] {
    const auto code = write_script(*arguments);
    return code.is_ok() ? *code : report(code.status());
  };
}

}  // namespace lockstep
