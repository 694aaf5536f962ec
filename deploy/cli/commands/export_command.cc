#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "comm/base/text/shell_word.h"
#include "comm/environment/standard_streams.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/export/export_model.h"
#include "deploy/cli/export/find_checkpoint.h"
#include "deploy/cli/export/int8_choice.h"
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
  source.wait_for_coordinator(RunSource::kGoneMs);
  bool is_away = false;
  // Ctrl-C may simply end us: whatever is written is whole.
  while (arguments.follow && (source.is_live() || is_away)) {
    const timespec pause{2, 0};
    ::nanosleep(&pause, nullptr);
    const Status status = out.update();
    is_away = status.code() == Code::kUnavailable;  // it is replaced, and the workers train on
    if (!is_away) LOCKSTEP_RETURN_IF_ERROR(status);
  }
  return Status::ok();
}

std::string share_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", share);
  return text;
}

// The command as the user can type it again.
std::string command_text(const ExportRequest& request) {
  std::string text = "lockstep export model " + shell_word(request.run_dir) + " ";
  if (request.checkpoint != "last") text += "--checkpoint " + shell_word(request.checkpoint) + " ";
  if (request.weights.is_average) text += "--ema ";
  if (request.weights.pruned > 0) text += "--prune " + share_text(request.weights.pruned) + " ";
  if (!request.int8.empty())
    text += request.int8 == kInt8Auto ? "--int8 " : "--int8=" + request.int8 + " ";
  return text + shell_word(request.target);
}

int write_model(ExportRequest request) {
  request.command = command_text(request);
  const auto done = export_model(request);
  if (!done.is_ok()) return report(done.status());
  print_text("%s of %s is in %s; %s/README.md says how to load it\n%s", done->checkpoint.c_str(),
             request.run_dir.c_str(), request.target.c_str(), request.target.c_str(),
             done->figures.c_str());
  return 0;
}

constexpr char kModelExamples[] =
    "Writes the weights with the names and files of the library that the model comes from: "
    "Hugging\n"
    "Face's directory for gpt2, torchvision's state dict for resnet18 and resnet50, a TorchScript\n"
    "file in evaluation mode, safetensors for the others. Beside them lockstep.json and README.md\n"
    "say what using them needs.\n\n"
    "Examples:\n"
    "  lockstep export model runs/first first-model\n"
    "  lockstep export model runs/first --checkpoint best best-model\n"
    "  lockstep export model runs/first --checkpoint 1500 at-1500\n"
    "  lockstep export model runs/first --ema averaged\n"
    "  lockstep export model runs/first --prune 0.5 half-zeros\n"
    "  lockstep export model runs/first small-model --int8\n"
    "\n"
    "Exit codes: 0 written, 64 DIR is not empty or there is no such checkpoint, 65 the checkpoint "
    "is\n"
    "damaged, 66 no run there or no checkpoint yet, 70 writing failed.";

void add_model_command(CLI::App& parent, Commands& commands) {
  auto* command = parent.add_subcommand("model", "Write the trained model for other libraries");
  const auto request = std::make_shared<ExportRequest>();
  command->add_option("run-dir", request->run_dir, "Run directory")->required();
  command->add_option("dir", request->target, "Directory to write, new or empty")->required();
  command->add_option("--checkpoint", request->checkpoint, kCheckpointHelp);
  command->add_flag("--ema", request->weights.is_average, "The average of the weights (train.ema)");
  command
      ->add_option("--prune", request->weights.pruned,
                   "Make this share of every matrix and kernel zero, the smallest ones")
      ->check([](const std::string& word) {
        const double share = std::strtod(word.c_str(), nullptr);
        return share >= 0 && share < 1 ? std::string()  // NaN is neither
                                       : "a share is at least 0 and below 1, not " + word;
      })
      ->type_name("SHARE");
  command
      ->add_flag("--int8{auto}", request->int8,
                 "Weights in 8 bits; of programs =dynamic multiplies in 8 bits, too, =weights not "
                 "(default: what this CPU is faster with)")
      ->check(CLI::IsMember({"auto", "dynamic", "weights"}));
  command->footer(kModelExamples);
  commands[command] = [request] { return write_model(*request); };
}

constexpr char kExportExamples[] =
    "Writes loss and learning rate of every step, speed and evaluations as event files into\n"
    "DIR/tensorboard. Beyond 100,000 steps it writes the mean of every hundred steps.\n\n"
    "Examples:\n"
    "  lockstep export tensorboard runs/first\n"
    "  lockstep export tensorboard runs/first --follow    # until the run is over\n"
    "  tensorboard --logdir runs/first/tensorboard\n"
    "\n"
    "Exit codes: 0 written, 66 no run there or no step yet, 70 writing failed.";

}  // namespace

void add_export_command(CLI::App& app, Commands& commands) {
  auto* parent = app.add_subcommand("export", "Write a run's model or history for other tools");
  parent->require_subcommand(1);
  auto* command = parent->add_subcommand("tensorboard", "Write TensorBoard's event files");
  const auto arguments = std::make_shared<ExportArguments>();
  command->add_option("run-dir", arguments->run_dir, "Run directory")->required();
  command->add_flag("--follow,-f", arguments->follow, "Continue until the run ends");
  command->footer(kExportExamples);
  add_model_command(*parent, commands);
  commands[command] = [arguments] { return report(export_to_tensorboard(*arguments)); };
}

}  // namespace lockstep
