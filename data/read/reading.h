// How a worker reads its data: what the job asks for, what became of it, and what was read; over
// all of its generations.
//
//   data.reader    on a local file system             on a network's, or where it cannot be used
//   auto           when they are used, while they     pread
//                  are in memory; else by what is
//                  fastest on the first that are not
//   mmap           mapped files                       pread
//   pread          a pool of threads                  a pool of threads
//
// Which one it is changes no byte of what is read.
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
#include "comm/wire/job.pb.h"
#include "data/io/reader.h"
#include "data/read/disk_watch.h"

namespace lockstep::data {

// What was read ahead; what is used where it is mapped, or read when it is used, is not counted.
struct ReadFigures {
  std::string reader;  // in use; "": none yet, kMapped or kOnUse: nothing is read ahead
  uint64_t reads = 0;
  uint64_t bytes = 0;
  uint64_t ahead_bytes = 0;  // asked for or read, and not used yet
};

class Reading {
 public:
  using NoteFn = std::function<void(const std::string&)>;
  static constexpr char kMapped[] = "mapped";  // samples are used where they are mapped
  static constexpr char kOnUse[] = "on_use";   // each is read when it is used

  // `note` is told what is worth a line in the log, on any thread. `blocks`: other ones for tests.
  Reading(const wire::DataSpec& data, NoteFn note,
          DiskWatch::BlocksFn blocks = DiskWatch::blocks_read);

  uint64_t ahead_limit_bytes() const { return ahead_limit_bytes_; }

  // Whether samples that are stored as they are used are taken from where they are mapped, of
  // files like that of `extent`.
  bool is_in_place(const FileExtent& extent);

  // Whether others of such files are to be read ahead only while they come from the disk: copies
  // made on another core cost more than reading what is in memory when it is used.
  bool is_ahead_only_of_disk(const FileExtent& extent) const;
  const DiskWatch::BlocksFn& blocks_read() const { return blocks_read_; }
  void is_on_use() { use(kOnUse); }
  // Reading ahead would have helped, and cannot be had: without it nothing is missing but time.
  void goes_on_without(const Status& why) { note_once(why.message()); }

  // What may read files like that of `extent`, not empty; of several it is to be measured which is
  // best, and told to chose(). kInternal when the machine gives no threads.
  Result<std::vector<std::unique_ptr<Reader>>> readers(const FileExtent& extent);
  void chose(const Reader& reader, const std::string& figures);

  void was_read(uint64_t bytes) {
    reads_ += 1;
    bytes_ += bytes;
  }
  void set_ahead(uint64_t bytes) { ahead_bytes_ = bytes; }

  ReadFigures figures() const;

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
