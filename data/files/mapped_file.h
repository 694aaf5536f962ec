// A file mapped read-only into memory, unmapped with the object.
//
// The file may change under us. Reading what has been cut off, or what a disk fails to give, gets
// zeros (guarded_range.h); a write by somebody else is seen as it comes. Both are told by
// unchanged(), afterwards: whoever hands on what was read from here asks before.
//
// Thread-safety: immutable; the bytes may be read from any thread that does not block SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "comm/base/status.h"
#include "data/base/guarded_range.h"
#include "data/io/file_extent.h"

namespace lockstep::data {

class MappedFile {
 public:
  // kNoInput when it is not there, not readable or not a regular file. An empty file is an empty
  // span. It stays open, so that unchanged() speaks of this file whatever its name leads to later.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  int64_t modified_ns() const { return modified_ns_; }
  // Some of its bytes, for who reads them from the file itself. REQUIRES: they are of bytes().
  FileExtent extent(const uint8_t* begin, uint64_t bytes) const {
    return {fd_, path_, static_cast<uint64_t>(begin - data_), bytes, size_, modified_ns_};
  }

  // Asks the kernel to read the file ahead of its use.
  void will_need() const;

  // kBadData, a sentence that names it, when not all that was read so far is what the file was when
  // it was opened: it is shorter or longer, was written to (its time says so), or could not be
  // read. One system call.
  Status unchanged() const;

 private:
  MappedFile() = default;
  std::string path_;
  int fd_ = -1;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  int64_t modified_ns_ = 0;
  GuardedRange guard_;
};

}  // namespace lockstep::data
