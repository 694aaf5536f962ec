// Brings bytes from files into memory: one interface for all ways to read.
//
//   pread_reader.h        pread on a pool of threads: every file system
//   page_cache_reader.h   told to the kernel ahead, then pread on the caller's thread: local disks
//   reader_trial.h        which of them is the fastest here
//
//   submit(read) ──▶ at most depth() in flight ──▶ wait(): one that is done, in any order
//
// INVARIANTS
//  R1 A read that is done without an error has all of its bytes. After reading them, the reader
//     checked that the file is what the extent says (file_extent.h).
//  R2 The reader touches no memory of a read that is done, and none after its destructor, which
//     waits for reads in flight.
//  R3 Memory and descriptors of a reader do not depend on how much is read.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "comm/base/status.h"
#include "data/io/file_extent.h"

namespace lockstep::data {

struct Read {
  FileExtent extent;
  uint8_t* out = nullptr;  // extent.bytes; the reader's until the read is done
  uint64_t tag = 0;        // for the caller
};

struct ReadDone {
  uint64_t tag = 0;
  Status status;  // as read_extent()
};

class Reader {
 public:
  virtual ~Reader() = default;
  virtual const char* name() const = 0;    // as data.reader: "pread", "mmap"
  virtual uint32_t depth() const = 0;      // reads in flight at most, > 0
  virtual uint32_t in_flight() const = 0;  // submitted and not returned by wait()
  // REQUIRES: in_flight() < depth().
  virtual void submit(const Read& read) = 0;
  // REQUIRES: in_flight() > 0.
  virtual ReadDone wait() = 0;
  // Whether wait() would return at once. Callers then take more before they wake other threads.
  virtual bool has_done() = 0;
};

// Does all reads. The error of the first read, in their order, that failed.
Status read_all(Reader& reader, std::span<const Read> reads);

}  // namespace lockstep::data
