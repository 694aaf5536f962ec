#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "comm/base/file.h"
#include "data/index/inspect.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/console.h"

namespace lockstep {
namespace {

struct InspectArguments {
  std::string path;
  std::string cache_dir;
  std::string format = "auto";
  data::SequenceCut cut{.block = 1024, .vocab = 0};
  bool json = false;
};

int inspect_with_cache(const InspectArguments& arguments, const std::string& cache_dir) {
  wire::DatasetSpec spec;
  spec.set_path(std::filesystem::absolute(arguments.path).string());
  spec.set_format(arguments.format);
  const auto found = data::inspect_data(spec, cache_dir, {}, arguments.cut);
  if (!found.is_ok()) return report(found.status());
  const std::string text =
      arguments.json ? data::to_json(*found).dump(2) + "\n" : data::to_text(*found);
  std::fputs(text.c_str(), stdout);
  return 0;
}

// Gzipped files are inflated somewhere: into a directory that is gone afterwards, unless told.
int inspect(const InspectArguments& arguments) {
  if (!arguments.cache_dir.empty()) return inspect_with_cache(arguments, arguments.cache_dir);
  std::string name = (std::filesystem::temp_directory_path() / "lockstep-inspect-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return report(Status(Code::kConfig, "cannot create a temporary directory " + name +
                                            "; name one with --cache-dir"));
  const int code = inspect_with_cache(arguments, name);
  std::error_code ignored;
  std::filesystem::remove_all(name, ignored);
  return code;
}

}  // namespace

void add_data_command(CLI::App& app, Commands& commands) {
  auto* group = app.add_subcommand("data", "Look at datasets");
  group->require_subcommand(1);
  auto* command = group->add_subcommand("inspect", "Samples, classes, statistics, fingerprint");
  const auto arguments = std::make_shared<InspectArguments>();
  command
      ->add_option("path", arguments->path, "Directory of the dataset, or a file of tokens or text")
      ->required();
  command->add_flag("--json", arguments->json, "As JSON");
  command->add_option("--cache-dir", arguments->cache_dir,
                      "Keep inflated files here; default: a temporary directory");
  command->add_option("--format", arguments->format, "As data.train.format of a job file");
  command->add_option("--block", arguments->cut.block, "Tokens: cut into sequences of so many");
  command->footer(
      "Examples:\n  lockstep data inspect /usr/share/datasets/fashion-mnist\n"
      "  lockstep data inspect /usr/share/datasets/fashion-mnist --json\n\n"
      "Exit codes: 0 usable, 65 damaged, 66 not there.");
  group->footer("Example:\n  lockstep data inspect /usr/share/datasets/fashion-mnist");
  commands[command] = [arguments] { return inspect(*arguments); };
}

}  // namespace lockstep
