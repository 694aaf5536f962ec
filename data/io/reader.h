// How bytes get from files into memory: the interface behind which all ways to read are the same.
//
//   pread_reader.h        pread on a pool of threads: every file system
//   page_cache_reader.h   told to the kernel ahead, then pread on the caller's thread: local disks
//   reader_trial.h        which of them is the fastest here
//
//   submit(read) ──▶ at most depth() in flight ──▶ wait(): one that is done, in any order
//
// INVARIANTS
//  R1 What is done without an error has all of its bytes, of a file that was what the extent says,
//     looked at after they were read (file_extent.h).
//  R2 Nothing of a read is touched after it is done, nor after the reader has gone: the destructor
//     waits for what is in flight.
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
  uint8_t* out = nullptr;  // extent.bytes; nobody else's until the read is done
  uint64_t tag = 0;        // the caller's own
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
  virtual uint32_t in_flight() const = 0;  // submitted, and wait() has not told of them
  // REQUIRES: in_flight() < depth().
  virtual void submit(const Read& read) = 0;
  // REQUIRES: in_flight() > 0.
  virtual ReadDone wait() = 0;
  // Whether wait() returns at once.
  virtual bool has_done() = 0;
};

// All of them; of those that fail the first in their order.
Status read_all(Reader& reader, std::span<const Read> reads);

}  // namespace lockstep::data
