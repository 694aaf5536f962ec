#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "data/index/inspect.h"
#include "data/index/thread_team.h"
#include "data/read/verify.h"
#include "data/source/url.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/console.h"
#include "deploy/cli/progress_line.h"
#include "deploy/cli/text.h"

namespace lockstep {
namespace {

struct DataArguments {
  std::string path;
  std::string cache_dir;
  std::string format = "auto";
  data::SampleCut cut{.block = 1024, .vocab = 0};
  uint32_t threads = 0;  // 0: as many as there are processors
  bool json = false;

  wire::DatasetSpec spec() const {
    wire::DatasetSpec spec;
    spec.set_path(source::is_url(path) ? path : std::filesystem::absolute(path).string());
    spec.set_format(format);
    return spec;
  }
};

// Names of files may be any bytes; what is no UTF-8 is shown as such.
std::string json_text(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int inspect(const DataArguments& arguments, const std::string& cache_dir) {
  ProgressLine line;
  const data::ProgressFn show = [&](const auto&... said) { line.show(said...); };
  const auto found = data::inspect_data(arguments.spec(), cache_dir, show, arguments.cut);
  if (!found.is_ok()) return report(found.status());
  const std::string text =
      arguments.json ? json_text(data::to_json(*found)) : data::to_text(*found);
  std::fputs(text.c_str(), stdout);
  return 0;
}

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
  const uint32_t threads = arguments.threads > 0 ? arguments.threads : data::usable_processors();
  Result<std::vector<data::Verification>> all = std::vector<data::Verification>();
  {
    ProgressLine line;
    const data::ProgressFn show = [&](const auto&... said) { line.show(said...); };
    all = data::verify_data(arguments.spec(), cache_dir, threads, show, arguments.cut);
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

// Inflated files and indexes go somewhere: into a directory that is gone afterwards, unless told.
int with_cache(const DataArguments& arguments,
               const std::function<int(const DataArguments&, const std::string&)>& work) {
  if (!arguments.cache_dir.empty()) return work(arguments, arguments.cache_dir);
  std::string name = (std::filesystem::temp_directory_path() / "lockstep-data-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return report(Status(Code::kConfig, "cannot create a temporary directory " + name +
                                            "; name one with --cache-dir"));
  const int code = work(arguments, name);
  std::error_code ignored;
  std::filesystem::remove_all(name, ignored);
  return code;
}

void add_options(CLI::App& command, DataArguments& arguments) {
  command
      .add_option("path", arguments.path,
                  "Directory of the dataset, or a file of tokens, text or tar shards, or a prefix "
                  "of Megatron-LM's files")
      ->required();
  command.add_option("--cache-dir", arguments.cache_dir,
                     "Keep inflated files and indexes here; default: a temporary directory");
  command.add_option("--format", arguments.format, "As data.train.format of a job file");
  command.add_option("--block", arguments.cut.block, "Tokens: cut into sequences of so many");
}

}  // namespace

void add_data_command(CLI::App& app, Commands& commands) {
  auto* group = app.add_subcommand("data", "Look at datasets");
  group->require_subcommand(1);
  group->footer(
      "Examples:\n  lockstep data inspect /usr/share/datasets/fashion-mnist\n"
      "  lockstep data verify /data/my-images");
  const auto arguments = std::make_shared<DataArguments>();

  auto* looks = group->add_subcommand("inspect", "Samples, classes, statistics, fingerprint");
  add_options(*looks, *arguments);
  looks->add_flag("--json", arguments->json, "As JSON");
  looks->footer(
      "Examples:\n  lockstep data inspect /usr/share/datasets/fashion-mnist\n"
      "  lockstep data inspect /usr/share/datasets/fashion-mnist --json\n\n"
      "Exit codes: 0 usable, 65 damaged, 66 not there.");
  commands[looks] = [arguments] { return with_cache(*arguments, inspect); };

  auto* reads = group->add_subcommand("verify", "Read every sample, decode every image");
  add_options(*reads, *arguments);
  reads->add_option("--threads", arguments->threads, "Default: as many as there are processors")
      ->check(CLI::Range(uint32_t{0}, limits::kDataThreads));
  reads->footer(
      "Names the files of the first 100 samples that are damaged.\n\n"
      "Examples:\n  lockstep data verify /data/my-images\n"
      "  lockstep data verify /data/shards --threads 4\n\n"
      "Exit codes: 0 all is well, 65 some are damaged, 66 not there.");
  commands[reads] = [arguments] { return with_cache(*arguments, verify); };
}

}  // namespace lockstep
