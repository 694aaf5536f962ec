// Decides how a worker reads its data ahead, from what the job asks for and what this machine has,
// and counts what was read. One object for the whole life of a worker, over its generations.
//
//   data.reader  on a local file system                       on a network's
//   auto         images: on use while they are in memory,     pread
//                else by what is fastest on the first of them
//                that are not; other samples: where mapped
//   mmap         images: page_cache_reader.h;                 pread
//                other samples: where they are mapped
//   pread        pread_reader.h                               pread, with more threads
//
// No reader changes a byte of what is read.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/prefetch/disk_watch.h"

namespace lockstep::wire {
class DataSpec;
}

namespace lockstep::data {

struct FileExtent;
class Reader;

// Counts what was read ahead, without samples that are used in their mapping or read on use.
struct PrefetchFigures {
  std::string reader;  // in use; "": none yet; kMapped or kOnUse: nothing is read ahead
  uint64_t reads = 0;
  uint64_t bytes = 0;
  uint64_t ahead_bytes = 0;  // asked for or read, and not used yet
};

class PrefetchPolicy {
 public:
  using NoteFn = std::function<void(const std::string&)>;
  static constexpr char kMapped[] = "mapped";  // samples are used where they are mapped
  static constexpr char kOnUse[] = "on_use";   // each sample is read when it is used

  // `note` gets what is worth a line in the log, on any thread. `blocks`: tests bring others.
  PrefetchPolicy(const wire::DataSpec& data, NoteFn note,
                 DiskWatch::BlocksFn blocks = DiskWatch::blocks_read);

  uint64_t ahead_limit_bytes() const { return ahead_limit_bytes_; }

  // True if samples that are stored as they are used are taken from where they are mapped, in files
  // like the file of `extent`.
  bool is_in_place(const FileExtent& extent);

  // Whether other samples of such files are read ahead only while they come from the disk.
  bool is_ahead_only_of_disk(const FileExtent& extent) const;
  const DiskWatch::BlocksFn& blocks_read() const { return blocks_read_; }
  void is_on_use() { use(kOnUse); }
  // Reading ahead would have helped, and cannot be had. It costs time, nothing else.
  void goes_on_without(const Status& why) { note_once(why.message()); }

  // The readers that may read files like the file of `extent`; not empty. If there are several, the
  // caller measures them and tells chose() the best. kInternal when the machine gives no threads.
  Result<std::vector<std::unique_ptr<Reader>>> readers(const FileExtent& extent);
  void chose(const Reader& reader, const std::string& figures);

  void was_read(uint64_t bytes) {
    reads_ += 1;
    bytes_ += bytes;
  }
  void set_ahead(uint64_t bytes) { ahead_bytes_ = bytes; }

  PrefetchFigures figures() const;

 private:
  void note_once(const std::string& what);
  void use(const std::string& reader);

  const std::string wanted_;
  const uint64_t ahead_limit_bytes_;
  const NoteFn note_;
  const DiskWatch::BlocksFn blocks_read_;

  std::atomic<uint64_t> reads_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> ahead_bytes_{0};

  mutable std::mutex mutex_;
  std::string chosen_;  // by measuring; "": not yet
  std::string in_use_;
  std::vector<std::string> noted_;
};

}  // namespace lockstep::data
