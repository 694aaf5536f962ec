// `lockstep resolve`: the job that `lockstep run` would train, and nothing else.
#include <cstdio>
#include <memory>

#include "comm/environment/standard_streams.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/job_words.h"
#include "deploy/cli/job/job_print.h"
#include "deploy/cli/run/load_job.h"

namespace lockstep {
namespace {

struct ResolveArguments {
  std::vector<std::string> positional;
  std::string workers;
  bool protobuf = false;
};

Status resolve(const ResolveArguments& arguments) {
  JobRequest request;
  LOCKSTEP_RETURN_IF_ERROR(split_arguments(arguments.positional, request));
  request.workers = arguments.workers;
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::JobSpec job, load_job(request));
  const std::string text = arguments.protobuf ? job.SerializeAsString() : job_yaml(job);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Status::ok();
}

constexpr char kResolveExamples[] =
    "Examples:\n"
    "  lockstep resolve train.py\n"
    "  lockstep resolve train.py train.epochs=3 -- --lr 0.1\n"
    "  lockstep resolve -m proj.train\n"
    "  lockstep resolve job.yaml > resolved.yaml\n"
    "\n"
    "Exit codes: 0 printed; 64, 65, 66, 78 as of `lockstep run`.";

}  // namespace

void add_resolve_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("resolve", "Print the resolved job, and train nothing");
  const auto arguments = std::make_shared<ResolveArguments>();
  add_job_words(*command, kJobWords, arguments->positional);
  command->add_option("--workers,-n", arguments->workers, "Worker processes (cluster.workers)");
  command->add_flag(
      "--protobuf", arguments->protobuf,
      "Write it as the message that workers read (comm/run/job/job.proto), not as YAML");
  command->footer(kResolveExamples);
  commands[command] = [arguments] { return report(resolve(*arguments)); };
}

}  // namespace lockstep
