// Data that are far away, as files: a URL or a slow mount, its local view (local_view.h) and what
// reads the content of files in it that are only places.
//
//   open() ──▶ list ──▶ names checked ──▶ view brought up to date
//   read(), copy_of(), announce() ──▶ CachedReader
//
// Thread-safety: open() from any thread; of an object all calls from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/source/cache_options.h"
#include "data/source/cached_reader.h"
#include "data/source/local_view.h"

namespace lockstep::source {

// Whether data at this path are read through a cache: a URL, or any where options say so.
bool is_far(const std::string& path, const CacheOptions& options);

// A file as a directory shows it.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
};

class RemoteFiles {
 public:
  // REQUIRES: is_far(). kUsage where the address is none, or there is no `cache_dir`; kNoInput,
  // kBadData, kConfig, kInternal as ObjectStore, check_names() and update_view() say them.
  static Result<std::shared_ptr<RemoteFiles>> open(const std::string& place,
                                                   const std::string& cache_dir,
                                                   const CacheOptions& options,
                                                   const SourceProgressFn& progress);
  ~RemoteFiles();  // breaks off what is under way
  RemoteFiles(const RemoteFiles&) = delete;
  RemoteFiles& operator=(const RemoteFiles&) = delete;

  // Of the directory or file in the view that stands for the whole source.
  const std::string& path() const;
  // Where it is really, for people.
  const std::string& place() const;
  // Whether the file at this path is of the view, and only a place.
  bool has_only_place(const std::string& path) const;

  // These take paths in the view.
  // [offset, offset + bytes) into `out`, of the file that was `then` in the view; kBadData where
  // that is another one now.
  Status read(const std::string& path, const FileStamp& then, uint64_t offset, uint64_t bytes,
              uint8_t* out);
  // A copy of the whole file, whose path is returned; the caller removes it. kNoInput where it is
  // none.
  Result<std::string> copy_of(const std::string& path);
  // What will be read soon, in that order; of what was announced and is not read yet at most
  // ahead_bytes(): more would push out of memory what is needed first.
  void announce(const std::string& path, uint64_t offset, uint64_t bytes);
  uint64_t ahead_bytes() const;

  SourceCounts counts() const;

 private:
  struct Impl;
  explicit RemoteFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::source
