// A queue of record batches in a file, for when the coordinator is away for long.
//
//   file := (u64 bytes, u64 generation, u64 crc32c, proto(StepRecords))*     integers in machine
//                                                                            order
//
// One process uses it as scratch space: unlinked at the end, never fsynced, never read by another.
//
// Errors: kInternal with the path when the file cannot be written or read, or would grow over
// `limit_bytes`.
// Thread-safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

class RecordSpill {
 public:
  // The file's folder is made when first needed.
  explicit RecordSpill(std::string path, uint64_t limit_bytes = limits::kRecordSpillBytes)
      : path_(std::move(path)), limit_bytes_(limit_bytes) {}
  ~RecordSpill();
  RecordSpill(const RecordSpill&) = delete;
  RecordSpill& operator=(const RecordSpill&) = delete;

  uint64_t size() const { return batches_; }
  // After an error the queue is as before, and a later push may succeed.
  Status push(Generation generation, const wire::StepRecords& records);
  // REQUIRES: size() > 0.
  Status pop(Generation* generation, wire::StepRecords* records);
  Status clear();
  // Visits all batches, oldest first, until `visit` returns false.
  Status for_each(const std::function<bool(const wire::StepRecords&)>& visit) const;

 private:
  Status open();
  Result<uint64_t> read_at(uint64_t offset, Generation* generation,
                           wire::StepRecords* records) const;

  std::string path_;
  uint64_t limit_bytes_;
  int fd_ = -1;
  uint64_t begin_ = 0;  // offset of the oldest batch
  uint64_t end_ = 0;
  uint64_t batches_ = 0;
};

}  // namespace lockstep
