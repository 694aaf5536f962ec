#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/file.h"
#include "deploy/agent/process.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"

namespace lockstep {

namespace {

struct CoordinatorArguments {
  std::string run_dir;
  bool resume = false;
  bool take_over = false;
};

// Becomes the program next to this one; returns only when it cannot.
Status become_coordinator(const CoordinatorArguments& arguments) {
  std::vector<std::string> words = {sibling_program("lockstep-coordinator"), "--run-dir",
                                    arguments.run_dir};
  if (arguments.resume) words.push_back("--resume");
  if (arguments.take_over) words.push_back("--take-over");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  return Status(Code::kConfig, "cannot start " + words[0] + ": " + errno_text(errno));
}

}  // namespace

void add_coordinator_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("coordinator", "Coordinate a prepared run");
  const auto arguments = std::make_shared<CoordinatorArguments>();
  command->add_option("--run-dir,-d", arguments->run_dir, "Directory of a prepared run")
      ->required();
  command->add_flag("--resume", arguments->resume,
                    "Continue from the newest checkpoint of the run");
  command->add_flag("--take-over", arguments->take_over,
                    "Replace a coordinator that died, and keep its workers");
  command->footer(
      "'lockstep run' and launchers start this command.\n"
      "Example:\n  lockstep coordinator --run-dir runs/first --resume");
  commands[command] = [arguments] { return report(become_coordinator(*arguments)); };
}

}  // namespace lockstep
