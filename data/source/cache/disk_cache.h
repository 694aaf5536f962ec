// Chunks (chunk_file.h) in a directory on a local disk, shared by all processes of a machine.
//
//   DIRECTORY/ab/abcdef...   a chunk, named by its id
//   DIRECTORY/locks/00..ff   locks: one process at a time fetches a chunk
//   DIRECTORY/usage          bytes of all chunks, counted by all processes
//   DIRECTORY/in-use, scan   locks: a process counts in `usage`; a process adds, or counts again
//
// INVARIANTS
//  C1 A failing disk gives no error: a read is a miss, and a store keeps nothing.
//  C2 Chunks and pending writes stay within the limit. Bytes that a killed process had reserved
//     stay counted until a process opens the cache alone, or evicts something.
//  C3 Only bytes whose checksums hold are handed out. A damaged chunk is removed.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/source/base/cache_options.h"

namespace lockstep::source {

class DiskCache {
 public:
  // If the directory cannot be made, the cache keeps nothing.
  DiskCache(std::string directory, const CacheOptions& options);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // Ids are hex digits, at least 4. [offset, offset + bytes) of the chunk.
  bool read(const std::string& id, uint64_t offset, uint64_t bytes, uint8_t* out);
  bool has(const std::string& id) const;

  // A message for the user, with what to do, if the disk keeps no more chunks now, whatever the
  // limit says. Empty: it keeps chunks.
  std::string why_disk_keeps_nothing() const;

  // Whether a chunk of so many bytes would be kept now.
  bool has_room(uint64_t bytes) const;
  bool store(const std::string& id, std::span<const uint8_t> content);

  // While this lives, nothing else on this machine has a lock of the same id. Empty if the file
  // system has no locks.
  class Lock {
   public:
    explicit Lock(int fd) : fd_(fd) {}
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int fd_;
  };
  std::unique_ptr<Lock> lock(const std::string& id) const;

  uint64_t bytes() const;  // of all chunks

 private:
  std::string path_of(const std::string& id) const;
  uint64_t to_keep_free(uint64_t disk_bytes) const;
  bool has_disk_room(uint64_t bytes) const;
  bool reserve(uint64_t bytes);
  bool write(const std::string& id, std::span<const uint8_t> content);
  void count_anew(uint64_t to_free);
  std::atomic<uint64_t>& usage() const;

  const std::string directory_;
  const CacheOptions options_;
  bool is_usable_ = false;
  int in_use_fd_ = -1;
  std::atomic<uint64_t>* shared_usage_ = nullptr;  // mapped; null: it cannot be
  mutable std::atomic<uint64_t> own_usage_{0};
};

}  // namespace lockstep::source
