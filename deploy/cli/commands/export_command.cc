#include <time.h>

#include <cstdio>
#include <memory>

#include "comm/inherited/standard_streams.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/watch/tensorboard_export.h"

namespace lockstep {
namespace {

struct ExportArguments {
  std::string run_dir;
  bool follow = false;
};

Status export_to_tensorboard(const ExportArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(RunSource source, RunSource::open(arguments.run_dir));
  LOCKSTEP_ASSIGN_OR_RETURN(TensorboardExport out, TensorboardExport::begin(source));
  LOCKSTEP_RETURN_IF_ERROR(out.update());
  print_text("%s\n", out.directory().c_str());
  std::fflush(stdout);
  // Ctrl-C may simply end us: whatever is written is whole.
  while (arguments.follow && source.is_live()) {
    const timespec pause{2, 0};
    ::nanosleep(&pause, nullptr);
    LOCKSTEP_RETURN_IF_ERROR(out.update());
  }
  return Status::ok();
}

constexpr char kExportExamples[] =
    "Writes loss and learning rate of every step, speed and evaluations as event files into\n"
    "DIR/tensorboard.\n\n"
    "Examples:\n"
    "  lockstep export tensorboard runs/first\n"
    "  lockstep export tensorboard runs/first --follow    # until the run is over\n"
    "  tensorboard --logdir runs/first/tensorboard\n"
    "\n"
    "Exit codes: 0 written, 66 no run there or no step yet, 70 writing failed.";

}  // namespace

void add_export_command(CLI::App& app, Commands& commands) {
  auto* parent = app.add_subcommand("export", "Write a run's history for other tools");
  parent->require_subcommand(1);
  auto* command = parent->add_subcommand("tensorboard", "Write TensorBoard's event files");
  const auto arguments = std::make_shared<ExportArguments>();
  command->add_option("run-dir", arguments->run_dir, "Run directory")->required();
  command->add_flag("--follow,-f", arguments->follow, "Continue until the run ends");
  command->footer(kExportExamples);
  commands[command] = [arguments] { return report(export_to_tensorboard(*arguments)); };
}

}  // namespace lockstep
