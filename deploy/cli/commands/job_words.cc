#include "deploy/cli/commands/job_words.h"

namespace lockstep {

void add_job_words(CLI::App& command, const std::string& help, std::vector<std::string>& words) {
  command.add_option("job", words, help);
  // CLI11 calls the functions of options in the order in which they were added. In front: what
  // follows an option of sbatch is Slurm's.
  command
      .add_option_function<std::string>(
          "--module,-m",
          [&words](const std::string& module) {
            words.insert(words.begin(), "script.module=" + module);
          },
          "In place of SCRIPT.py: a module of a package, as python -m takes it (proj.train)")
      ->option_text("MODULE");
}

}  // namespace lockstep
