// The program `lockstep`: parses the command line, runs one subcommand, gives its exit code.
#include <signal.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "comm/environment/process_limit.h"
#include "comm/environment/standard_streams.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/explain_usage.h"
#include "deploy/cli/script/script_words.h"

namespace lockstep {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  lockstep run job.yaml --workers 2         # train\n"
    "  lockstep run train.py -- --lr 0.1         # the same with a loop of one's own\n"
    "  lockstep status --run-dir runs/first      # how is it doing?\n"
    "  lockstep ui runs/first                    # the same in the browser\n"
    "  lockstep stop runs/first                  # with a checkpoint\n"
    "  lockstep run --resume --run-dir runs/first\n"
    "  lockstep runs                             # all runs in runs/, to compare\n"
    "  lockstep ckpt verify runs/first\n"
    "  lockstep scale runs/first 4               # while it goes on\n"
    "  lockstep sbatch job.yaml --run-dir runs/first --nodes 4 --submit\n"
    "  lockstep predict runs/first photos        # with what it learned\n"
    "  lockstep generate runs/shakespeare --prompt 'To be'\n"
    "  lockstep data inspect /usr/share/datasets/fashion-mnist\n"
    "  lockstep doctor job.yaml                  # what holds it back?\n"
    "\n"
    "'lockstep help COMMAND' tells more; 'lockstep run --help-job' lists the keys of a job file.";

// The innermost subcommand that was given.
const CLI::App* chosen(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? &app : chosen(*subcommands.front());
}

// True if the output of the command is for watching: the end of the training is its result.
bool trains(const CLI::App& command) {
  return command.get_name() == "run" || command.get_name() == "agent";
}

int run(int argc, char** argv) {
  CLI::App app(
      "Lockstep trains one model on many workers, with the same result whatever happens "
      "to them.",
      "lockstep");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_line(), "Print the version, and end");
  app.footer(kExamples);
  Commands commands;
#define LOCKSTEP_ADD(name) add_##name##_command(app, commands);
  LOCKSTEP_COMMANDS(LOCKSTEP_ADD)
#undef LOCKSTEP_ADD
  const std::vector<std::string> words = with_script_words({argv + 1, argv + argc});
  try {
    app.parse(
        std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes the last first
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return finish_output(app.exit(error));  // --help, --version
    return report(explain_usage(app, error, words));
  }
  const CLI::App* command = chosen(app);
  if (const Status checked = check_written_paths(*command); !checked.is_ok())
    return report(checked);
  const int code = commands.at(command)();
  return trains(*command) ? code : finish_output(code);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::secure_standard_streams();
  lockstep::explain_missing_threads();
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of a call
  try {
    return lockstep::run(argc, argv);
  } catch (const std::exception& error) {  // file systems and memory that fail in odd ways
    return lockstep::report(lockstep::Status(lockstep::Code::kInternal, error.what()));
  }
}
