#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "comm/base/text/printable.h"
#include "comm/environment/progress_line.h"
#include "comm/environment/standard_streams.h"
#include "data/loader/verify.h"
#include "data/open/inspect.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/json_text.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/data/data_subcommands.h"

namespace lockstep {
namespace {

struct VerifyArguments : DataArguments {
  bool full = false;
  bool json = false;
};

void print_verdict(const data::Verification& split) {
  print_text(
      "%s: %s samples of format %s, %s\n", split.split.c_str(), grouped(split.samples).c_str(),
      split.format.c_str(),
      split.damaged == 0 ? "none is damaged" : (grouped(split.damaged) + " damaged").c_str());
  for (const std::string& file : split.damaged_files)
    print_text("  %s\n", printable_line(file).c_str());
  for (const std::string& fault : split.faults) print_text("  %s\n", printable_line(fault).c_str());
  if (split.damaged > split.faults.size())
    print_text("  and %s more\n", grouped(split.damaged - split.faults.size()).c_str());
  print_text("  read %s in %.1f s\n", bytes_text(split.bytes).c_str(), split.seconds);
  if (const uint64_t files = data::files_in(split.left_out); files > 0)
    print_text("%s left out: %s\n", plural(files, "file").c_str(),
               printable_line(data::left_out_text(split.left_out)).c_str());
}

nlohmann::json to_json(const data::Verification& split) {
  return {{"split", split.split},
          {"format", split.format},
          {"samples", split.samples},
          {"damaged", split.damaged},
          {"faults", split.faults},
          {"damaged_files", split.damaged_files},
          {"bytes", split.bytes},
          {"seconds", split.seconds},
          {"left_out", data::to_json(split.left_out)}};
}

// Prints all findings.
void tell(const VerifyArguments& arguments, const std::vector<data::Verification>& all) {
  nlohmann::json splits = nlohmann::json::array();
  for (const data::Verification& split : all) {
    if (arguments.json)
      splits.push_back(to_json(split));
    else
      print_verdict(split);
  }
  if (arguments.json)
    std::fputs(json_text({{"path", arguments.path}, {"splits", splits}}).c_str(), stdout);
}

int verify_data(const VerifyArguments& arguments, const std::string& cache_dir) {
  Result<std::vector<data::Verification>> all = std::vector<data::Verification>();
  {
    ProgressLine line;
    const data::ProgressFn show = [&](const auto&... said) { line.show(said...); };
    all = data::verify_data(
        arguments.spec(), cache_dir, arguments.used_threads(), show, arguments.used_cut(),
        arguments.full ? data::VerifyDepth::kFull : data::VerifyDepth::kSamples);
  }
  if (!all.is_ok() && arguments.json)
    std::fputs(json_text({{"path", arguments.path}, {"error", all.status().message()}}).c_str(),
               stdout);
  if (!all.is_ok()) return report(all.status());
  tell(arguments, *all);
  uint64_t damaged = 0;
  uint64_t files = 0;
  for (const data::Verification& split : *all) {
    damaged += split.damaged;
    files += split.damaged_files.size();
  }
  if (files > 0)
    return report({Code::kBadData, grouped(files) + " of the files and arrays of " +
                                       arguments.path +
                                       " do not match their own checksums; copy them again"});
  if (damaged == 0) return 0;
  return report({Code::kBadData, grouped(damaged) + " of the samples of " + arguments.path +
                                     " are damaged; repair or remove these files"});
}

}  // namespace

void add_data_verify(CLI::App& group, Commands& commands) {
  const auto arguments = std::make_shared<VerifyArguments>();
  auto* command = group.add_subcommand("verify", "Read every sample, decode every image");
  add_data_options(*command, *arguments);
  add_document_options(*command, *arguments);
  add_threads_option(*command, *arguments);
  command->add_flag("--full", arguments->full,
                    "Compare the checksums in the files, too: of TFRecord's records, .npz's "
                    "arrays, and gzipped files");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Names the files of the first 100 samples that are damaged.\n\n"
      "Examples:\n  lockstep data verify /data/my-images\n"
      "  lockstep data verify /data/shards --threads 4 --full\n"
      "  lockstep data verify /data/shards --json\n\n"
      "Exit codes: 0 all is well, 65 some are damaged, 66 not there.");
  commands[command] = [arguments] {
    return with_cache(*arguments,
                      [&](const std::string& dir) { return verify_data(*arguments, dir); });
  };
}

}  // namespace lockstep
