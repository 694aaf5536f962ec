#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "comm/environment/progress_line.h"
#include "comm/environment/standard_streams.h"
#include "data/open/index_data.h"
#include "data/transform/transform_list.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/data/data_subcommands.h"

namespace lockstep {
namespace {

struct IndexArguments : DataArguments {
  std::vector<std::string> transforms;
};

void print_index(const data::IndexedData& indexed, const std::string& cache_dir) {
  for (const data::IndexedData::Split& split : indexed.splits)
    print_text("%s: %s samples of format %s, fingerprint %s\n", split.split.c_str(),
               grouped(split.samples).c_str(), split.format.c_str(), split.fingerprint.c_str());
  for (const data::IndexedData::File& file : indexed.made)
    print_text("made %s, %s\n", file.name.c_str(), bytes_text(file.bytes).c_str());
  if (indexed.made.empty()) print_text("%s already held all that a run needs\n", cache_dir.c_str());
  print_text("to use it, set in the job: data.cache_dir: %s\n", cache_dir.c_str());
}

int index(const IndexArguments& arguments) {
  const auto transforms = data::parse_transforms(arguments.transforms);
  if (!transforms.is_ok()) return report(transforms.status());
  data::SampleCut cut = arguments.used_cut();
  cut.frame = transforms->frame;
  const std::string cache_dir = std::filesystem::absolute(arguments.cache_dir).string();
  Result<data::IndexedData> indexed = data::IndexedData();
  {
    ProgressLine line;
    const data::ProgressFn show = [&](const auto&... said) { line.show(said...); };
    indexed = data::index_data(arguments.spec(), cache_dir, show, cut);
  }
  if (!indexed.is_ok()) return report(indexed.status());
  print_index(*indexed, cache_dir);
  return 0;
}

}  // namespace

void add_data_index(CLI::App& group, Commands& commands) {
  const auto arguments = std::make_shared<IndexArguments>();
  auto* command =
      group.add_subcommand("index", "Prepare data in advance, as a run does before its first step");
  add_data_options(*command, *arguments);
  add_document_options(*command, *arguments);
  command->get_option("--cache-dir")
      ->required()
      ->description("Directory for the results, the job's data.cache_dir");
  command
      ->add_option("--transforms", arguments->transforms,
                   "data.transforms of the job; statistics of images of several sizes depend on it")
      ->delimiter(',');
  command->footer(
      "Writes inflated files, tokens of text, indexes of samples, and statistics. Results that "
      "fit\n"
      "the files stay, also when the command is interrupted.\n\n"
      "Examples:\n  lockstep data index /data/my-images --cache-dir /fast/cache\n"
      "  lockstep data index /data/shards --cache-dir /fast/cache --transforms "
      "random_resized_crop=224,flip,normalize\n"
      "  lockstep data index /data/books --cache-dir /fast/cache --tokenizer tokenizer.json\n\n"
      "Exit codes: 0 ready, 65 damaged, 66 not there.");
  commands[command] = [arguments] { return index(*arguments); };
}

}  // namespace lockstep
