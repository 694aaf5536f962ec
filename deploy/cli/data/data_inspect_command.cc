#include <memory>

#include "comm/environment/progress_line.h"
#include "comm/environment/standard_streams.h"
#include "data/open/inspect.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/json_text.h"
#include "deploy/cli/data/data_subcommands.h"

namespace lockstep {
namespace {

struct InspectArguments : DataArguments {
  bool json = false;
};

int inspect(const InspectArguments& arguments, const std::string& cache_dir) {
  ProgressLine line;
  const data::ProgressFn show = [&](const auto&... said) { line.show(said...); };
  const auto found = data::inspect_data(arguments.spec(), cache_dir, show, arguments.used_cut());
  if (!found.is_ok()) return report(found.status());
  const std::string text =
      arguments.json ? json_text(data::to_json(*found)) : data::to_text(*found);
  print_text("%s", text.c_str());
  return 0;
}

}  // namespace

void add_data_inspect(CLI::App& group, Commands& commands) {
  const auto arguments = std::make_shared<InspectArguments>();
  auto* command =
      group.add_subcommand("inspect", "Show samples, classes, statistics and fingerprint");
  add_data_options(*command, *arguments);
  add_document_options(*command, *arguments);
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Examples:\n  lockstep data inspect /usr/share/datasets/fashion-mnist\n"
      "  lockstep data inspect /usr/share/datasets/fashion-mnist --json\n\n"
      "Exit codes: 0 usable, 65 damaged, 66 not there.");
  commands[command] = [arguments] {
    return with_cache(*arguments, [&](const std::string& dir) { return inspect(*arguments, dir); });
  };
}

}  // namespace lockstep
