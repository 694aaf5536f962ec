#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "comm/environment/standard_streams.h"
#include "comm/run/checkpoint/store.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/watch/best_checkpoint.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct CheckpointArguments {
  std::string path;
  bool all = false;
};

// The checkpoints that PATH means: one of them, a directory of them, or a run directory.
Result<std::vector<ListedCheckpoint>> find_checkpoints(const std::string& path) {
  if (!fs::exists(path)) return Status(Code::kNoInput, path + " does not exist");
  const fs::path clean = fs::path(path) / "";
  const std::string directory = clean.parent_path().string();
  const std::string name = clean.parent_path().filename().string();
  if (const auto parsed = parse_checkpoint_name(name);
      parsed || fs::exists(clean / kManifestName)) {
    ListedCheckpoint one{parsed.value_or(CheckpointName{}), directory, Status::ok(), {}};
    auto info = read_checkpoint_info(directory);
    one.status = info.status();
    if (info.is_ok()) one.info = std::move(*info);
    return std::vector<ListedCheckpoint>{std::move(one)};
  }
  const bool is_run = fs::is_directory(clean / "checkpoints");
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto found, list_checkpoints(is_run ? (clean / "checkpoints").string() : directory));
  if (found.empty()) return Status(Code::kNoInput, "there is no checkpoint in " + path);
  return found;
}

// Returns the exit code after an unreadable checkpoint. A live run prunes: a checkpoint that it
// deleted between our listing and our reading is reported as gone, and is no error.
int report_unreadable(const ListedCheckpoint& checkpoint, const Status& status, int code) {
  if (fs::exists(checkpoint.path)) return report(status);
  print_text("gone  %s  deleted by the run meanwhile\n", checkpoint.path.c_str());
  return code;
}

// None unless PATH is a run directory whose run keeps its best checkpoint.
std::optional<BestCheckpoint> best_of(const std::string& path) {
  auto best = find_best_checkpoint(path);
  return best.is_ok() ? std::optional(std::move(*best)) : std::nullopt;
}

std::string best_text(const BestCheckpoint& best) {
  return "  best: loss " + fixed(best.loss, 4) +
         (best.accuracy ? ", accuracy " + percent(*best.accuracy, 2) : "");
}

int list(const CheckpointArguments& arguments) {
  const auto found = find_checkpoints(arguments.path);
  if (!found.is_ok()) return report(found.status());
  const auto best = best_of(arguments.path);
  print_text("%10s %6s %10s  %-16s %s\n", "step", "epoch", "size", "weights", "path");
  int code = 0;
  for (const ListedCheckpoint& checkpoint : *found) {
    if (!checkpoint.status.is_ok()) {
      code = report_unreadable(checkpoint, checkpoint.status, code);
      continue;
    }
    const CheckpointInfo& info = checkpoint.info;
    const std::string mark = best && best->name == info.name ? best_text(*best) : "";
    print_text("%10s %6u %10s  %-16s %s%s\n", grouped(info.manifest.resume.step).c_str(),
               info.manifest.epoch + 1, bytes_text(info.bytes).c_str(),
               info.manifest.weights_sha256.substr(0, 16).c_str(), info.path.c_str(), mark.c_str());
  }
  return code;
}

// Prints the hash alone for one checkpoint, so that scripts can compare; with names for several.
int hash(const CheckpointArguments& arguments) {
  const auto found = find_checkpoints(arguments.path);
  if (!found.is_ok()) return report(found.status());
  int code = 0;
  for (const ListedCheckpoint& checkpoint : *found) {
    const auto digest = hash_checkpoint(checkpoint.path, arguments.all);
    if (!digest.is_ok())
      code = report_unreadable(checkpoint, digest.status(), code);
    else if (found->size() == 1)
      print_text("%s\n", digest->c_str());
    else
      print_text("%s  %s\n", digest->c_str(), checkpoint.path.c_str());
  }
  return code;
}

int verify_found(const CheckpointArguments& arguments) {
  const auto found = find_checkpoints(arguments.path);
  if (!found.is_ok()) return report(found.status());
  int code = 0;
  for (const ListedCheckpoint& checkpoint : *found) {
    const auto info = verify_checkpoint(checkpoint.path);
    if (info.is_ok())
      print_text("ok  %s  %s\n", bytes_text(info->bytes).c_str(), checkpoint.path.c_str());
    else
      code = report_unreadable(checkpoint, info.status(), code);
  }
  return code;
}

CLI::App* add(CLI::App& parent, const char* name, const char* what,
              const std::shared_ptr<CheckpointArguments>& arguments) {
  auto* command = parent.add_subcommand(name, what);
  command
      ->add_option("run-or-checkpoint", arguments->path,
                   "A run directory, its checkpoints, or one checkpoint")
      ->required();
  return command;
}

}  // namespace

void add_checkpoint_command(CLI::App& app, Commands& commands) {
  auto* group = app.add_subcommand("ckpt", "List, hash and verify checkpoints");
  group->require_subcommand(1);
  const auto arguments = std::make_shared<CheckpointArguments>();
  auto* ls = add(*group, "ls", "List checkpoints, oldest first", arguments);
  ls->footer("Example:\n  lockstep ckpt ls runs/first");
  commands[ls] = [arguments] { return list(*arguments); };
  auto* hashed =
      add(*group, "hash", "SHA-256 over the weights: names, shapes, types, bytes", arguments);
  hashed->add_flag("--all", arguments->all, "Hash the optimizer state, too");
  hashed->footer("Example:\n  lockstep ckpt hash runs/first/checkpoints/step-0000000500-g1-m1");
  commands[hashed] = [arguments] { return hash(*arguments); };
  auto* verified = add(*group, "verify", "Read all files and compare all hashes", arguments);
  verified->footer(
      "Example:\n  lockstep ckpt verify runs/first\n\nExit codes: 0 all are whole, 65 "
      "one is damaged, 66 no checkpoint there.");
  commands[verified] = [arguments] { return verify_found(*arguments); };
  group->footer("Examples:\n  lockstep ckpt ls runs/first\n  lockstep ckpt verify runs/first");
}

}  // namespace lockstep
