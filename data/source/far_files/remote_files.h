// Far data as files: a URL or a slow mount, its local view (local_view.h), and the reads of files
// that are only placeholders in the view.
//
//   open() ──▶ list ──▶ check names ──▶ update view
//   read(), copy_of(), announce() ──▶ ObjectCache
//
// Thread-safety: all calls from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/source/base/cache_options.h"
#include "data/source/cache/object_cache.h"
#include "data/source/far_files/local_view.h"

namespace lockstep::source {

// Whether data at this path are read through a cache: a URL, or any path if the options say so.
bool is_far(const std::string& path, const CacheOptions& options);

// A file as a directory shows it.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
};

class RemoteFiles {
 public:
  // REQUIRES: is_far(). kUsage for a wrong address, or without a `cache_dir`. Other errors as
  // ObjectStore, check_names() and update_view().
  static Result<std::shared_ptr<RemoteFiles>> open(const std::string& place,
                                                   const std::string& cache_dir,
                                                   const CacheOptions& options,
                                                   const SourceProgressFn& progress);
  ~RemoteFiles();  // ends requests that are under way
  RemoteFiles(const RemoteFiles&) = delete;
  RemoteFiles& operator=(const RemoteFiles&) = delete;

  // The directory or file in the view that stands for the whole source.
  const std::string& path() const;
  // The real address, for people.
  const std::string& place() const;
  // Whether the file at this path belongs to the view and is only a placeholder.
  bool has_only_place(const std::string& path) const;

  // The calls below take paths in the view.

  // Reads [offset, offset + bytes) into `out`. kBadData if the file in the view is not what `then`
  // says any more.
  Status read(const std::string& path, const FileStamp& then, uint64_t offset, uint64_t bytes,
              uint8_t* out);
  // Copies the whole file and returns the path of the copy, which the caller removes. kNoInput if
  // there is no such file.
  Result<std::string> copy_of(const std::string& path);
  // Announces a range that will be read soon; ranges are read in this order. REQUIRES: ranges that
  // are announced and not read yet have at most about ahead_bytes(). More would push out of memory
  // what is needed first.
  void announce(const std::string& path, uint64_t offset, uint64_t bytes);
  uint64_t ahead_bytes() const;

  SourceCounts counts() const;
  std::string why_disk_keeps_nothing() const;  // as DiskCache's

 private:
  struct Impl;
  explicit RemoteFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::source
