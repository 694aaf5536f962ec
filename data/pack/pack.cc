#include "data/pack/pack.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "data/base/split.h"
#include "data/base/thread_team.h"
#include "data/open/detect_format.h"
#include "data/open/find_place.h"
#include "data/pack/hold_directory.h"
#include "data/pack/open_pack_source.h"
#include "data/pack/pack_source.h"
#include "data/pack/shard_writer.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kPlanName[] = "pack.json";
constexpr size_t kPlanBytes = kMib;
constexpr int kPlanDepth = 3;  // of a split's keys, in the list of them
constexpr uint64_t kMegabyte = 1'000'000;

struct SplitPlan {
  std::string name;  // "train", "val", or empty
  std::unique_ptr<PackSource> source;
};

std::string name_of(size_t shard, size_t shards) {
  char name[64];
  std::snprintf(name, sizeof name, "data-%05zu-of-%05zu.arrow", shard, shards);
  return name;
}

Result<std::vector<SplitPlan>> open_splits(const DataPlace& place, const std::string& cache_dir,
                                           const PackOptions& options, const ProgressFn& progress) {
  const uint64_t shard_bytes = options.shard_mb * kMegabyte;
  std::vector<SplitPlan> splits(1);
  LOCKSTEP_ASSIGN_OR_RETURN(
      splits[0].source, open_pack_source(place, Split::kTrain, cache_dir, shard_bytes, progress));
  if (!has_eval_files(place.spec.path())) return splits;
  splits[0].name = "train";
  splits.push_back({"val", nullptr});
  LOCKSTEP_ASSIGN_OR_RETURN(
      splits[1].source, open_pack_source(place, Split::kEval, cache_dir, shard_bytes, progress));
  return splits;
}

// The same for the same data and settings, whatever the threads and wherever the data lie.
Json plan_of(const std::vector<SplitPlan>& splits, const PackOptions& options) {
  Json all = Json::array();
  for (const SplitPlan& split : splits)
    all.push_back({{"split", split.name},
                   {"fingerprint", split.source->fingerprint()},
                   {"files", split.source->shards().size()}});
  return {{"pack", 1},
          {"compression", options.compression},
          {"shard_mb", options.shard_mb},
          {"splits", all}};
}

Status is_other(const std::string& to, const Json& stored, const Json& plan) {
  std::string how = "from other data, or by another version of Lockstep";
  for (const char* key : {"compression", "shard_mb"})
    if (stored.is_object() && stored.value(key, Json()) != plan[key])
      how = "with another --" + std::string(key == std::string("shard_mb") ? "shard-mb" : key) +
            " (" + stored.value(key, Json()).dump() + ")";
  return {Code::kUsage, to + " was packed " + how + "; name another directory, or empty this one"};
}

// Whether `to` may be written: there is nothing in it, or what this call would put there.
Status agree(const std::string& to, const Json& plan) {
  const std::string path = to + "/" + kPlanName;
  std::error_code error;
  if (fs::exists(path, error)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_file(path, kPlanBytes));
    // JSON nested deeper than a plan was not written here, and could nest without end.
    const auto is_shallow = [](int depth, Json::parse_event_t, const Json&) {
      return depth <= kPlanDepth;
    };
    const Json stored = Json::parse(text, is_shallow, /*allow_exceptions=*/false);
    return stored == plan ? Status::ok() : is_other(to, stored, plan);
  }
  if (!fs::is_empty(to, error))
    return {Code::kUsage, to + " is not empty, and lockstep data pack did not begin it; name "
                               "another directory"};
  return replace_file(path, plan.dump(2) + "\n");
}

Status make_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!fs::is_directory(path, error)) return {Code::kUsage, "cannot make the directory " + path};
  return Status::ok();
}

struct Part {
  const PackSource* source = nullptr;
  const PackShard* shard = nullptr;
  std::string path;
};

// Lists the missing files, and reports on all.
Status list_parts(const std::string& to, const std::vector<SplitPlan>& splits,
                  std::vector<Part>& parts, PackReport& report) {
  for (const SplitPlan& split : splits) {
    PackedSplit& packed = report.splits.emplace_back();
    packed.directory = split.name.empty() ? to : to + "/" + split.name;
    packed.unit = split.source->unit();
    LOCKSTEP_RETURN_IF_ERROR(make_directory(packed.directory));
    const auto& shards = split.source->shards();
    packed.files = shards.size();
    for (size_t i = 0; i < shards.size(); ++i) {
      packed.units += shards[i].end - shards[i].begin;
      const std::string path = packed.directory + "/" + name_of(i, shards.size());
      if (has_shard(shards[i], path))
        ++packed.found;
      else
        parts.push_back({split.source.get(), &shards[i], path});
    }
  }
  return Status::ok();
}

ArrowCodec codec_of(const std::string& compression) {
  if (compression == "zstd") return ArrowCodec::kZstd;
  return compression == "lz4" ? ArrowCodec::kLz4 : ArrowCodec::kNone;
}

}  // namespace

Result<PackReport> pack_data(const wire::DatasetSpec& spec, const std::string& to,
                             const PackOptions& options, const std::string& cache_dir,
                             const ProgressFn& progress) {
  SampleCut cut;
  cut.tokenizer = options.tokenizer;
  cut.columns = options.columns;
  LOCKSTEP_ASSIGN_OR_RETURN(const DataPlace place, find_place(spec, cache_dir, progress, cut));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto splits, open_splits(place, cache_dir, options, progress));
  LOCKSTEP_RETURN_IF_ERROR(make_directory(to));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto alone, hold_directory(to));
  LOCKSTEP_RETURN_IF_ERROR(agree(to, plan_of(splits, options)));
  PackReport report;
  std::vector<Part> parts;
  LOCKSTEP_RETURN_IF_ERROR(list_parts(to, splits, parts, report));
  for (const Part& part : parts) report.read_bytes += part.shard->bytes;
  std::atomic<uint64_t> done{0};
  std::atomic<uint64_t> written{0};
  const auto threads =
      static_cast<uint32_t>(std::clamp<uint64_t>(parts.size(), 1, std::max(options.threads, 1U)));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(threads, "pack"));
  LOCKSTEP_RETURN_IF_ERROR(team->run(parts.size(), [&](uint32_t thread, uint64_t i) -> Status {
    const Part& part = parts[i];
    LOCKSTEP_ASSIGN_OR_RETURN(
        const uint64_t bytes,
        write_shard(*part.source, *part.shard, codec_of(options.compression), part.path, done));
    written += bytes;
    if (thread == 0 && progress) progress("packing into " + to, done, report.read_bytes);
    return Status::ok();
  }));
  report.written_bytes = written;
  return report;
}

}  // namespace lockstep::data
