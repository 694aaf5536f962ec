#include "deploy/cli/export/find_checkpoint.h"

#include <charconv>
#include <filesystem>
#include <system_error>
#include <vector>

#include "comm/base/text/shell_word.h"
#include "comm/run/checkpoint/newest_checkpoint.h"
#include "comm/run/directory/layout.h"
#include "deploy/cli/watch/best_checkpoint.h"

namespace lockstep {
namespace {

std::string steps_text(const std::vector<ListedCheckpoint>& found) {
  std::string text;
  for (const ListedCheckpoint& checkpoint : found)
    text += (text.empty() ? "" : ", ") + std::to_string(checkpoint.name.step);
  return text;
}

Result<CheckpointInfo> verified(const std::string& path) {
  auto info = verify_checkpoint(path);
  if (!info.is_ok()) return why_unusable(info.status(), path);
  return info;
}

}  // namespace

Status why_unusable(const Status& error, const std::string& path) {
  std::error_code ignored;
  if (error.is_ok() || std::filesystem::exists(path, ignored)) return error;
  return {Code::kNoInput, "the run has deleted its checkpoint " + shell_word(path) +
                              " meanwhile, as checkpoint.keep says; name a newer one, or last"};
}

Result<CheckpointInfo> find_checkpoint(const std::string& run_dir, const std::string& word) {
  const std::string directory = rundir::file_in(run_dir, rundir::kCheckpoints);
  if (word == "last") return newest_checkpoint(directory);
  if (word == "best") {
    LOCKSTEP_ASSIGN_OR_RETURN(const BestCheckpoint best, find_best_checkpoint(run_dir));
    return verified(directory + "/" + best.name);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto found, list_checkpoints(directory));
  Step step = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), step);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size())
    return Status(Code::kUsage,
                  "--checkpoint is " + shell_word(word) +
                      "; it takes last, best, or the step of a checkpoint: " + steps_text(found));
  for (size_t i = found.size(); i-- > 0;)
    if (found[i].name.step == step) return verified(found[i].path);
  return Status(Code::kUsage,
                "the run has no checkpoint of step " + word + "; it has " + steps_text(found));
}

}  // namespace lockstep
