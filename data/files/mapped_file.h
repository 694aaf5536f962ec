// A file mapped read-only into memory; the object unmaps it.
//
// The file may change while it is mapped. Bytes that were cut off, or that the disk fails to give,
// read as zeros (guarded_range.h). A write by another program shows up as it comes. unchanged()
// reports both afterwards: ask it before handing on what was read from here.
//
// Thread-safety: immutable; any thread that does not block SIGBUS may read the bytes.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/base/status.h"
#include "data/base/guarded_range.h"
#include "data/io/file_extent.h"

namespace lockstep::data {

class MappedFile {
 public:
  // kNoInput if the file is not there, not readable or not a regular file. An empty file is an
  // empty span. The file stays open, so unchanged() speaks of this file even if its name leads
  // elsewhere later.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  int64_t modified_ns() const { return modified_ns_; }
  // Some of the file's bytes, for code that reads them from the file. REQUIRES: they lie in
  // bytes().
  FileExtent extent(const uint8_t* begin, uint64_t bytes) const {
    return {fd_, path_, static_cast<uint64_t>(begin - data_), bytes, size_, modified_ns_};
  }

  // Asks the kernel to read the file ahead of its use.
  void will_need() const;

  // Makes unchanged() compare the content, too, where a file of at most kWholeContentBytes was
  // touched (data/base/change_mark.h). Hashes it now; the content of a larger file is not compared.
  // Call it before anything else reads the bytes.
  void remember_content();

  // kBadData, a sentence that names the file, if the file changed since it was opened: it is
  // shorter or longer, its time of change says that it was written to, it was rewritten and got its
  // old time again, or it could not be read. One system call, if the file was not touched.
  Status unchanged() const;

 private:
  struct Seen;
  bool is_rewritten(const struct stat& now) const;

  MappedFile();
  std::string path_;
  int fd_ = -1;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  int64_t modified_ns_ = 0;
  std::unique_ptr<Seen> seen_;
  GuardedRange guard_;
};

}  // namespace lockstep::data
