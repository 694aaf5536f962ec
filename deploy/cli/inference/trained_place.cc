#include "deploy/cli/inference/trained_place.h"

#include <filesystem>
#include <system_error>

#include "comm/base/text/shell_word.h"
#include "comm/run/directory/layout.h"
#include "deploy/cli/export/find_checkpoint.h"

namespace lockstep {

namespace fs = std::filesystem;

void add_trained_place(CLI::App& command, TrainedPlace& place) {
  command
      .add_option("run-or-dir", place.place,
                  "Run directory, or a directory of `lockstep export model`")
      ->required();
  command.add_option("--checkpoint", place.checkpoint, std::string("Of a run: ") + kCheckpointHelp);
}

Result<std::vector<std::string>> worker_options(const TrainedPlace& place) {
  std::error_code error;
  const std::string directory = fs::canonical(place.place, error).string();
  if (error) return Status(Code::kNoInput, "there is no directory " + shell_word(place.place));
  std::vector<std::string> words{"--model", directory};
  if (!fs::exists(rundir::file_in(directory, rundir::kJob), error)) {
    if (place.checkpoint.empty()) return words;
    return Status(Code::kUsage, shell_word(place.place) +
                                    " is no run directory, so it has no checkpoints; leave out "
                                    "--checkpoint");
  }
  const std::string word = place.checkpoint.empty() ? "last" : place.checkpoint;
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointInfo checkpoint, find_checkpoint(directory, word));
  words.insert(words.end(), {"--checkpoint", checkpoint.path});
  if (word == "last") words.emplace_back("--or-newer");
  return words;
}

}  // namespace lockstep
