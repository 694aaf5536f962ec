#include <charconv>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "comm/run/job/predictions.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/become_worker.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/run/replay_script.h"
#include "worker/session/start_files.h"

namespace lockstep {
namespace {

struct ReplayArguments {
  std::string run_dir;
  std::string step;
  std::string slot;
  std::string batch_file;
};

// Refuses options that only Lockstep's own loop can serve.
Result<int> replay_of_script(const ReplayArguments& arguments, const std::string& run_dir) {
  const char* const option = !arguments.slot.empty()         ? "--slot"
                             : !arguments.batch_file.empty() ? "--batch-file"
                                                             : nullptr;
  if (option != nullptr)
    return Status(Code::kUsage, std::string(option) +
                                    ": the run trains a script, whose layers and batches replay "
                                    "does not see; leave it out, and print them in the script");
  uint64_t step = 0;
  const std::string& text = arguments.step;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), step);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || step == 0)
    return Status(Code::kUsage, "--step is " + text + ", but steps are counted from 1");
  return replay_script(run_dir, step - 1);
}

int replay_step(const ReplayArguments& arguments) {
  std::error_code error;
  const std::string run_dir = std::filesystem::canonical(arguments.run_dir, error).string();
  if (error) return report(Status(Code::kNoInput, "there is no directory " + arguments.run_dir));
  const auto job = read_job(run_dir);
  if (!job.is_ok()) return report(job.status());
  if (is_script(job->model())) {
    const auto code = replay_of_script(arguments, run_dir);
    return code.is_ok() ? *code : report(code.status());
  }
  std::vector<std::string> words{"replay", "--run-dir", run_dir, "--step", arguments.step};
  const auto add = [&words](const char* option, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(option);
    words.push_back(value);
  };
  add("--slot", arguments.slot);
  add("--batch-file", arguments.batch_file);
  return become_worker(std::move(words));
}

constexpr char kReplayNotes[] =
    "Trains again from the newest checkpoint before the step. Every loss must equal the recorded "
    "one\n"
    "bit for bit, however many workers the run had and whatever happened to them. Then it shows\n"
    "norms, extremes and non-finite counts of gradients and activations, and the samples of the "
    "step\n"
    "by their loss, with file and offset. Of a script's run it ends at the first step that "
    "differs,\n"
    "and shows the loss and the samples of each slot.\n\n"
    "Examples:\n"
    "  lockstep replay runs/first --step 813\n"
    "  lockstep replay runs/first --step 813 --slot 2 --batch-file /tmp/batch.safetensors\n"
    "\n"
    "Exit codes: 0 the same bits, 1 other bits, 64 the run still goes on, or has no such step.";

}  // namespace

void add_replay_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("replay", "Compute a past step again, and look into it");
  const auto arguments = std::make_shared<ReplayArguments>();
  command->add_option("run-dir", arguments->run_dir, "Directory of a run that has ended")
      ->required();
  command->add_option("--step", arguments->step, "The step, counted from 1 as in history.jsonl")
      ->required();
  command->add_option("--slot", arguments->slot, "Look at this slot only");
  command->add_option("--batch-file", arguments->batch_file,
                      "File for the batch (safetensors); default "
                      "RUN_DIR/replay-step-N.safetensors");
  command->footer(kReplayNotes);
  commands[command] = [arguments] { return replay_step(*arguments); };
}

}  // namespace lockstep
