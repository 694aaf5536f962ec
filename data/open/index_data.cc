#include "data/open/index_data.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>

#include "data/base/damaged_files.h"
#include "data/base/modified_ns.h"
#include "data/base/split.h"
#include "data/base/thread_team.h"
#include "data/formats/arrow/arrow_images.h"
#include "data/formats/shards/packed_shards.h"
#include "data/open/detect_format.h"
#include "data/open/find_place.h"
#include "data/open/inspect.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

struct Stamp {
  uint64_t bytes = 0;
  int64_t modified = 0;
  ino_t number = 0;
  bool operator==(const Stamp&) const = default;
};
using Stamps = std::map<std::string, Stamp>;

// True for a file that a process is writing, or locks while it writes another.
bool is_passing(const std::string& name) {
  return name.ends_with(".lock") || name.find(".tmp.") != std::string::npos;
}

bool has_copies(const std::string& directory) {
  return directory.starts_with(kArrowCopies) || directory.starts_with(kShardCopies);
}

// `under`: what names begin with; empty, or a directory within and a slash.
void add_stamps(const std::string& directory, const std::string& under, Stamps& stamps) {
  std::error_code error;
  for (fs::directory_iterator it(directory + "/" + under, error), end; !error && it != end;
       it.increment(error)) {
    struct stat info {};
    const std::string name = it->path().filename().string();
    // A link leads to a file of the data set, which was not made here.
    if (is_passing(name) || ::lstat(it->path().c_str(), &info) != 0) continue;
    if (S_ISREG(info.st_mode))
      stamps[under + name] = {static_cast<uint64_t>(info.st_size), modified_ns(info), info.st_ino};
    else if (under.empty() && S_ISDIR(info.st_mode) && has_copies(name))
      add_stamps(directory, name + "/", stamps);
  }
}

Stamps stamps_in(const std::string& directory) {
  Stamps stamps;
  add_stamps(directory, "", stamps);
  return stamps;
}

void compare(const Stamps& before, const Stamps& now, IndexedData& out) {
  for (const auto& [name, stamp] : now) {
    const auto was = before.find(name);
    const bool is_kept = was != before.end() && was->second == stamp;
    (is_kept ? out.kept : out.made).push_back({name, stamp.bytes});
  }
}

using Opened = Result<std::unique_ptr<Dataset>>;

IndexedData::Split describe(const Dataset& dataset, std::string split) {
  return {std::move(split), dataset.format(), dataset.samples(), dataset.fingerprint()};
}

}  // namespace

Result<IndexedData> index_data(const wire::DatasetSpec& wanted, const std::string& cache_dir,
                               const ProgressFn& progress, const SampleCut& wanted_cut) {
  LOCKSTEP_ASSIGN_OR_RETURN(const DataPlace place,
                            find_place(wanted, cache_dir, progress, wanted_cut));
  const wire::DatasetSpec& spec = place.spec;
  const SampleCut& cut = place.cut;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string format,
                            resolve_format(spec.path(), spec.format(), cut.columns));
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_both, serves_both(spec.path(), format, cut.columns));
  const Stamps before = stamps_in(cache_dir);
  std::mutex mutex;
  const ProgressFn one_at_a_time = [&](const auto&... said) {
    const std::lock_guard lock(mutex);
    if (progress) progress(said...);
  };
  const uint32_t splits = is_both ? 1 : 2;
  std::optional<Opened> opened[2];
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(splits, "index"));
  LOCKSTEP_RETURN_IF_ERROR(team->run(splits, [&](uint32_t, uint64_t i) {
    opened[i] =
        open_any_size(spec, i == 0 ? Split::kTrain : Split::kEval, cache_dir, one_at_a_time, cut);
    return Status::ok();
  }));
  if (const Status train = opened[0]->status(); train.code() == Code::kBadData && splits > 1)
    return joined_damage(train, opened[1]->status());
  IndexedData out;
  for (uint32_t i = 0; i < splits; ++i) {
    const Opened& dataset = *opened[i];
    // A directory of training data only is fine.
    if (i == 1 && dataset.status().code() == Code::kNoInput) continue;
    LOCKSTEP_RETURN_IF_ERROR(dataset.status());
    out.splits.push_back(describe(**dataset, is_both ? "data" : i == 0 ? "train" : "eval"));
  }
  compare(before, stamps_in(cache_dir), out);
  return out;
}

}  // namespace lockstep::data
