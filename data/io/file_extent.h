// A run of bytes in a file, what that file was when its place was found, and how it is read: whole,
// or with a sentence that names the file and says what to do.
//
// Every read ends with a look at the file's size and time, after the bytes: what is written to, cut
// off or gone is told, whatever its bytes would have been.
//
// Thread-safety: values and free functions; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "comm/base/status.h"

namespace lockstep::data {

struct FileExtent {
  int fd = -1;       // open while it is read; -1: `path` is opened for it, and closed again
  std::string path;  // of a file that is open, for messages
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t file_bytes = 0;  // of the whole file, as it was
  int64_t modified_ns = 0;  // likewise
};

// Exactly extent.bytes into `out`. kBadData naming the file that has gone, is not what it was, or
// cannot be read, also not on being asked limits::kReadAttempts times.
Status read_extent(const FileExtent& extent, uint8_t* out);

// What a reader of its own needs of it.

// -1, and errno. Not blocking: a FIFO that somebody left there must not hang.
int open_to_read(const std::string& path);
// kBadData when the open file is not what it was.
Status unchanged(int fd, const FileExtent& extent);
// Of an error: of a place in the file, and of opening it.
Status cannot_read(const FileExtent& extent, uint64_t done, int error);
Status cannot_open(const FileExtent& extent, int error);
Status was_cut_off(const FileExtent& extent);
// As read_extent(), of a file that is open as `fd`.
Status read_open_extent(int fd, const FileExtent& extent, uint8_t* out);

// Whether a failed read is worth another: EINTR and EAGAIN, and an error of the disk or server.
bool may_pass(int error);

}  // namespace lockstep::data
