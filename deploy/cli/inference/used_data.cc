#include "deploy/cli/inference/used_data.h"

namespace lockstep {

void add_used_data(CLI::App& command, UsedDataWords& words, bool is_needed) {
  auto* data = command.add_option("data", words.path, "Data in any format of data/FORMATS.md");
  if (is_needed) data->required();
  command.add_option("--format", words.format, "As data.train.format (default: auto)");
  command.add_flag("--train-split", words.is_training,
                   "The training part, if DATA holds both parts");
  command.add_option("--batch", words.batch,
                     "Samples of a batch (default: as the run's evaluation)");
  command
      .add_option("--threads", words.threads,
                  "That compute in a process (default: train.threads_per_worker)")
      ->check(CLI::Range(0, 1024));
}

void add_part_count(CLI::App& command, uint32_t& parts) {
  command.add_option("--workers", parts, "Processes (default: 1)")->check(CLI::Range(1, 256));
}

std::vector<std::string> worker_options(const UsedDataWords& words) {
  std::vector<std::string> out;
  if (!words.path.empty()) out.push_back("--data=" + words.path);
  out.push_back("--format=" + words.format);
  if (words.is_training) out.emplace_back("--train-split");
  if (words.is_unlabelled) out.emplace_back("--unlabelled");
  out.insert(out.end(),
             {"--batch", std::to_string(words.batch), "--threads", std::to_string(words.threads)});
  return out;
}

}  // namespace lockstep
