#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "comm/base/clock.h"
#include "comm/base/limits.h"
#include "data/index/parquet_files.h"
#include "data/pack/pack.h"
#include "deploy/cli/console.h"
#include "deploy/cli/data_subcommands.h"
#include "deploy/cli/progress_line.h"
#include "deploy/cli/text.h"
#include "deploy/cli/unpack_parquet.h"

namespace lockstep {
namespace {

struct PackArguments : DataArguments {
  std::string to;
  data::PackOptions options;
};

void print(const data::PackedSplit& split) {
  std::printf("%s: %s %s in %s", split.directory.c_str(), grouped(split.units).c_str(),
              split.unit.c_str(), plural(split.files, "file").c_str());
  if (split.found > 0) std::printf(", %s of them from before", grouped(split.found).c_str());
  std::fputs("\n", stdout);
}

// Beside the files, since their disk has room for about as much; a second call finds it again.
std::string unpacked_directory(const std::string& to) {
  return (std::filesystem::path(to) / "").parent_path().string() + ".unpacked";
}

// Parquet by its decoded columns, anything else by itself.
Result<wire::DatasetSpec> readable_spec(const PackArguments& arguments, const std::string& to,
                                        const data::ProgressFn& show) {
  wire::DatasetSpec spec = arguments.spec();
  if (spec.format() != "auto" || !data::is_parquet(spec.path())) return spec;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string path,
      unpack_parquet(spec.path(), unpacked_directory(to), arguments.used_threads(), show));
  spec.set_path(path);
  return spec;
}

int pack(const PackArguments& arguments, const std::string& cache_dir) {
  data::PackOptions options = arguments.options;
  options.threads = arguments.used_threads();
  options.tokenizer = arguments.used_cut().tokenizer;
  const std::string to = std::filesystem::absolute(arguments.to).string();
  const SystemClock clock;
  const int64_t begin_ns = clock.monotonic_ns();
  Result<data::PackReport> packed = data::PackReport();
  {
    ProgressLine line;
    const data::ProgressFn show = [&](const auto&... said) { line.show(said...); };
    const auto spec = readable_spec(arguments, to, show);
    if (!spec.is_ok()) return report(spec.status());
    packed = data::pack_data(*spec, to, options, cache_dir, show);
  }
  if (!packed.is_ok()) return report(packed.status());
  std::error_code ignored;
  std::filesystem::remove_all(unpacked_directory(to), ignored);
  const double seconds = std::max(static_cast<double>(clock.monotonic_ns() - begin_ns) / 1e9, 1e-3);
  for (const data::PackedSplit& split : packed->splits) print(split);
  std::printf(
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
                   "none (read in place), zstd or lz4 (inflated once more by every reader)")
      ->check(CLI::IsMember({"none", "zstd", "lz4"}))
      ->capture_default_str();
  command->add_option("--shard-mb", arguments->options.shard_mb, "MB of a file, before compression")
      ->check(CLI::Range(uint32_t{1}, limits::kPackShardMb))
      ->capture_default_str();
  add_threads_option(*command, *arguments);
  command->footer(
      "Samples keep their order, labels and bytes; JPEG and PNG images are not encoded again.\n"
      "The same command goes on with what an interrupted one has left. Of Parquet files the "
      "columns "
      "with the samples are first decoded into DIRECTORY.unpacked, which is gone at the end.\n\n"
      "Examples:\n  lockstep data pack /data/my-images /data/packed\n"
      "  lockstep data pack /data/fineweb /data/packed --compression zstd --threads 4\n\n"
      "Exit codes: 0 packed, 64 the directory holds something else, 65 damaged, 66 not there.");
  commands[command] = [arguments] {
    return with_cache(*arguments, [&](const std::string& dir) { return pack(*arguments, dir); });
  };
}

}  // namespace lockstep
