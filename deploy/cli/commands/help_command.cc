#include <cstdio>
#include <memory>

#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/explain_usage.h"

namespace lockstep {
namespace {

int show_help(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& command = named_command(app, words);
  std::string asked = app.get_name();
  for (const std::string& word : words) asked += " " + word;
  if (command_words(command) != asked) return report(no_such_command(command, words));
  // App::help() would tell of the command that was typed, which is this one.
  const std::string text = command.get_formatter()->make_help(&command, command_words(command),
                                                              CLI::AppFormatMode::Normal);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void add_help_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("help", "Tell more about a command");
  const auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("command", *words, "Its words; without any, all commands are listed");
  command->footer(
      "Examples:\n"
      "  lockstep help\n"
      "  lockstep help run\n"
      "  lockstep help data inspect");
  commands[command] = [words, &app] { return show_help(app, *words); };
}

}  // namespace lockstep
