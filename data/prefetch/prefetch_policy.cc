#include "data/prefetch/prefetch_policy.h"

#include <algorithm>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/run/job/job.pb.h"
#include "data/io/file_system.h"
#include "data/io/page_cache_reader.h"
#include "data/io/pread_reader.h"
#include "data/io/reader.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kThreads = 8;         // as many reads as a disk does at a time
constexpr uint32_t kRemoteThreads = 16;  // each waits for a server

}  // namespace

PrefetchPolicy::PrefetchPolicy(const wire::DataSpec& data, NoteFn note, DiskWatch::BlocksFn blocks)
    : wanted_(data.reader().empty() ? "auto" : data.reader()),
      ahead_limit_bytes_(data.read_ahead_mb() * kMib),
      note_(std::move(note)),
      blocks_read_(std::move(blocks)) {}

bool PrefetchPolicy::is_in_place(const FileExtent& extent) {
  const bool is_remote = is_on_remote_file_system(extent.path);
  const bool is_mapped = wanted_ == "mmap" || wanted_ == "auto";
  if (ahead_limit_bytes_ > 0 && (is_remote || !is_mapped)) return false;
  use(kMapped);
  return true;
}

bool PrefetchPolicy::is_ahead_only_of_disk(const FileExtent& extent) const {
  return wanted_ == "auto" && !is_on_remote_file_system(extent.path);
}

Result<std::vector<std::unique_ptr<Reader>>> PrefetchPolicy::readers(const FileExtent& extent) {
  std::string wanted = wanted_;
  {
    const std::lock_guard lock(mutex_);
    if (!chosen_.empty()) wanted = chosen_;
  }
  const bool is_remote = is_on_remote_file_system(extent.path);
  if (wanted == "mmap" && is_remote)
    note_once(
        "data.reader mmap: " + extent.path +
        " is on a network file system, where mapped files wait for each page; Lockstep uses pread");
  std::vector<std::unique_ptr<Reader>> all;
  if (wanted != "mmap" || is_remote) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto pread, make_pread_reader(is_remote ? kRemoteThreads : kThreads));
    all.push_back(std::move(pread));
  }
  if (!is_remote && (wanted == "mmap" || wanted == "auto")) all.push_back(make_page_cache_reader());
  if (all.size() == 1) use(all.front()->name());
  if (wanted == "auto" && is_remote)
    note_once("data.reader auto: pread, since " + extent.path + " is on a network file system");
  return all;
}

void PrefetchPolicy::chose(const Reader& reader, const std::string& figures) {
  const std::string name = reader.name();
  use(name);
  {
    const std::lock_guard lock(mutex_);
    if (figures.empty() || !chosen_.empty()) return;
    chosen_ = name;
  }
  note_("data.reader auto: " + name + ", by the first samples of the run (" + figures + ")");
}

PrefetchFigures PrefetchPolicy::figures() const {
  PrefetchFigures all;
  all.reads = reads_;
  all.bytes = bytes_;
  all.ahead_bytes = ahead_bytes_;
  const std::lock_guard lock(mutex_);
  all.reader = in_use_;
  return all;
}

void PrefetchPolicy::use(const std::string& reader) {
  const std::lock_guard lock(mutex_);
  in_use_ = reader;
}

void PrefetchPolicy::note_once(const std::string& what) {
  {
    const std::lock_guard lock(mutex_);
    if (std::find(noted_.begin(), noted_.end(), what) != noted_.end()) return;
    noted_.push_back(what);
  }
  note_(what);
}

}  // namespace lockstep::data
