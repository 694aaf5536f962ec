// A run of bytes in a file, with the size and time that the file had when the run was found. A read
// gives all bytes, or an error that names the file and says what to do.
//
// Every read looks at the file's size and time after the bytes, so it notices a file that was
// written to, cut off or removed, whatever the bytes are. With marks it also notices a file that
// was rewritten and got its old time again: by the bytes, if this process has read them before.
//
// Thread-safety: values and free functions; any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "comm/base/status.h"

namespace lockstep::data {

struct FileExtent {
  int fd = -1;       // open while it is read; -1: each read opens and closes `path`
  std::string path;  // only for messages if fd is open
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t file_bytes = 0;  // size of the whole file, as it was
  int64_t modified_ns = 0;  // time of its last change, as it was
  // Marks of the file and of these bytes, as this process knows them (data/base/change_mark.h); 0:
  // not read yet. Both live as long as the data set. Null: nothing is kept.
  std::atomic<uint64_t>* mark = nullptr;
  std::atomic<uint32_t>* content = nullptr;
};

// Reads exactly extent.bytes into `out`. kBadData names a file that has gone, is not what it was,
// or cannot be read in limits::kReadAttempts attempts.
Status read_extent(const FileExtent& extent, uint8_t* out);

// The parts of read_extent(), for the readers of this folder.

// -1, and errno. Not blocking, so that a FIFO does not hang.
int open_to_read(const std::string& path);
// kBadData if the open file, from which `out` was read, is not what it was.
Status unchanged(int fd, const FileExtent& extent, const uint8_t* out);
// Errors of reading at a place in the file, and of opening it.
Status cannot_read(const FileExtent& extent, uint64_t done, int error);
Status cannot_open(const FileExtent& extent, int error);
Status was_cut_off(const FileExtent& extent);
// As read_extent(), with the file open as `fd`.
Status read_open_extent(int fd, const FileExtent& extent, uint8_t* out);

// Whether another attempt may help: EINTR, EAGAIN, and an error of the disk or server (EIO).
bool may_pass(int error);

}  // namespace lockstep::data
