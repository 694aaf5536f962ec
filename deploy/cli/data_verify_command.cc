#include <cstdio>
#include <memory>
#include <vector>

#include "data/read/verify.h"
#include "deploy/cli/console.h"
#include "deploy/cli/data_subcommands.h"
#include "deploy/cli/progress_line.h"
#include "deploy/cli/text.h"

namespace lockstep {
namespace {

void print(const data::Verification& split) {
  std::printf(
      "%s: %s samples of format %s, %s\n", split.split.c_str(), grouped(split.samples).c_str(),
      split.format.c_str(),
      split.damaged == 0 ? "none is damaged" : (grouped(split.damaged) + " damaged").c_str());
  for (const std::string& fault : split.faults) std::printf("  %s\n", fault.c_str());
  if (split.damaged > split.faults.size())
    std::printf("  and %s more\n", grouped(split.damaged - split.faults.size()).c_str());
}

int verify(const DataArguments& arguments, const std::string& cache_dir) {
  Result<std::vector<data::Verification>> all = std::vector<data::Verification>();
  {
    ProgressLine line;
    const data::ProgressFn show = [&](const auto&... said) { line.show(said...); };
    all = data::verify_data(arguments.spec(), cache_dir, arguments.used_threads(), show,
                            arguments.used_cut());
  }
  if (!all.is_ok()) return report(all.status());
  uint64_t damaged = 0;
  for (const data::Verification& split : *all) {
    print(split);
    damaged += split.damaged;
  }
  if (damaged == 0) return 0;
  return report({Code::kBadData, grouped(damaged) + " of the samples of " + arguments.path +
                                     " cannot be trained on; mend these files or take them away"});
}

}  // namespace

void add_data_verify(CLI::App& group, Commands& commands) {
  const auto arguments = std::make_shared<DataArguments>();
  auto* command = group.add_subcommand("verify", "Read every sample, decode every image");
  add_data_options(*command, *arguments);
  add_threads_option(*command, *arguments);
  command->footer(
      "Names the files of the first 100 samples that are damaged.\n\n"
      "Examples:\n  lockstep data verify /data/my-images\n"
      "  lockstep data verify /data/shards --threads 4\n\n"
      "Exit codes: 0 all is well, 65 some are damaged, 66 not there.");
  commands[command] = [arguments] {
    return with_cache(*arguments, [&](const std::string& dir) { return verify(*arguments, dir); });
  };
}

}  // namespace lockstep
