#include <unistd.h>

#include <cerrno>
#include <memory>

#include "comm/base/file.h"
#include "deploy/agent/process.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/console.h"

namespace lockstep {

void add_coordinator_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("coordinator", "Coordinate a run that is prepared");
  const auto rest = std::make_shared<std::vector<std::string>>();
  command->add_option("options", *rest, "Of lockstep-coordinator, as --run-dir DIR [--resume]");
  command->prefix_command();
  command->footer("Example:\n  lockstep coordinator --run-dir runs/first --resume");
  commands[command] = [command] {
    const std::string program = sibling_program("lockstep-coordinator");
    std::vector<std::string> words = command->remaining();
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    return report(Status(Code::kConfig, "cannot start " + program + ": " + errno_text(errno)));
  };
}

}  // namespace lockstep
