#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "comm/base/clock.h"
#include "comm/base/limits.h"
#include "comm/environment/progress_line.h"
#include "comm/environment/standard_streams.h"
#include "data/formats/tables/parquet_files.h"
#include "data/open/detect_format.h"
#include "data/pack/pack.h"
#include "data/source/url.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/data/data_subcommands.h"
#include "deploy/cli/data/unpack_parquet.h"

namespace lockstep {
namespace {

struct PackArguments : DataArguments {
  std::string to;
  data::PackOptions options;
};

void print_pack(const data::PackedSplit& split) {
  print_text("%s: %s %s in %s", split.directory.c_str(), grouped(split.units).c_str(),
             split.unit.c_str(), plural(split.files, "file").c_str());
  if (split.found > 0) print_text(", %s of them from before", grouped(split.found).c_str());
  std::fputs("\n", stdout);
}

// Whether nothing else is there that would be packed as it is.
bool is_parquet_alone(const wire::DatasetSpec& spec) {
  return spec.format() == "auto" && data::holds_parquet(spec.path());
}

Result<data::PackReport> pack_parquet(const wire::DatasetSpec& spec, const std::string& to,
                                      const data::PackOptions& options,
                                      const std::string& cache_dir,
                                      const data::ProgressFn& progress) {
  if (!options.tokenizer.empty())
    return Status(Code::kUsage,
                  "--tokenizer is for text, but " + spec.path() + " is Parquet; leave it out");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const UnpackedParquet unpacked,
      UnpackedParquet::make(spec.path(), to, options.columns, options.threads, progress));
  wire::DatasetSpec decoded = spec;
  decoded.set_path(unpacked.path());
  data::PackOptions how = options;
  how.columns.has_header = unpacked.is_table();
  // The copy of a large table takes as much room as the table does.
  auto packed = data::pack_data(decoded, to, how,
                                unpacked.is_table() ? unpacked.cache() : cache_dir, progress);
  // A second call would find the same in damaged data.
  const bool is_over = packed.is_ok() || packed.status().code() == Code::kBadData;
  if (is_over) unpacked.remove();
  if (packed.is_ok()) return packed;
  std::string said = unpacked.with_sources(packed.status().message());
  if (unpacked.is_table() && is_over) said += " (line 1 has the names of the columns)";
  if (!is_over)
    said += " (" + unpacked.path() + " holds what was decoded from " + spec.path() + ")";
  return Status(packed.status().code(), said);
}

Result<data::PackReport> pack_any(const wire::DatasetSpec& spec, const std::string& to,
                                  const data::PackOptions& options, const std::string& cache_dir,
                                  const data::ProgressFn& progress) {
  if (source::is_url(spec.path())) {
    if (spec.path().ends_with(".parquet")) return data::pack_it_first(spec.path());
  } else if (is_parquet_alone(spec)) {
    return pack_parquet(spec, to, options, cache_dir, progress);
  }
  return data::pack_data(spec, to, options, cache_dir, progress);
}

int pack(const PackArguments& arguments, const std::string& cache_dir) {
  data::PackOptions options = arguments.options;
  options.threads = arguments.used_threads();
  options.tokenizer = arguments.used_cut().tokenizer;
  options.columns = arguments.cut.columns;
  const auto whole = std::filesystem::absolute(arguments.to).lexically_normal();
  const std::string to = (whole.has_filename() ? whole : whole.parent_path()).string();
  const SystemClock clock;
  const int64_t begin_ns = clock.monotonic_ns();
  Result<data::PackReport> packed = data::PackReport();
  {
    ProgressLine line;
    const data::ProgressFn show = [&](const auto&... said) { line.show(said...); };
    packed = pack_any(arguments.spec(), to, options, cache_dir, show);
  }
  if (!packed.is_ok()) return report(packed.status());
  const double seconds = std::max(static_cast<double>(clock.monotonic_ns() - begin_ns) / 1e9, 1e-3);
  for (const data::PackedSplit& split : packed->splits) print_pack(split);
  print_text(
      "packed %s into %s of files in %s, %s/s\n", bytes_text(packed->read_bytes).c_str(),
      bytes_text(packed->written_bytes).c_str(), duration_text(seconds).c_str(),
      bytes_text(static_cast<uint64_t>(static_cast<double>(packed->read_bytes) / seconds)).c_str());
  return 0;
}

}  // namespace

void add_data_pack(CLI::App& group, Commands& commands) {
  const auto arguments = std::make_shared<PackArguments>();
  auto* command = group.add_subcommand("pack", "Write a dataset as Arrow IPC files");
  add_data_options(*command, *arguments);
  command->add_option("to", arguments->to, "Directory for the files")->required();
  command
      ->add_option("--compression", arguments->options.compression,
                   "none (read in place), zstd or lz4 (every reader inflates once more)")
      ->check(CLI::IsMember({"none", "zstd", "lz4"}))
      ->capture_default_str();
  command->add_option("--shard-mb", arguments->options.shard_mb, "MB of a file, before compression")
      ->check(CLI::Range(uint32_t{1}, limits::kPackShardMb))
      ->capture_default_str();
  add_threads_option(*command, *arguments);
  command->footer(
      "Samples keep their order, labels and bytes; JPEG and PNG images are not encoded again.\n"
      "After an interruption the same command continues. It first decodes the sample columns of\n"
      "Parquet files into DIRECTORY.unpacked, and removes that at the end.\n\n"
      "Examples:\n  lockstep data pack /data/my-images /data/packed\n"
      "  lockstep data pack /data/fineweb /data/packed --compression zstd --threads 4\n\n"
      "Exit codes: 0 packed, 64 the directory holds something else, 65 damaged, 66 not there.");
  commands[command] = [arguments] {
    return with_cache(*arguments, [&](const std::string& dir) { return pack(*arguments, dir); });
  };
}

}  // namespace lockstep
