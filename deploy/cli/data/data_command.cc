#include "deploy/cli/commands/commands.h"
#include "deploy/cli/data/data_subcommands.h"

namespace lockstep {

void add_data_command(CLI::App& app, Commands& commands) {
  auto* group = app.add_subcommand("data", "Look at datasets");
  group->require_subcommand(1);
  group->footer(
      "Examples:\n  lockstep data inspect /usr/share/datasets/fashion-mnist\n"
      "  lockstep data verify /data/my-images");
  add_data_index(*group, commands);
  add_data_inspect(*group, commands);
  add_data_pack(*group, commands);
  add_data_verify(*group, commands);
}

}  // namespace lockstep
