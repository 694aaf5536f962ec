// A file mapped read-only into memory, unmapped with the object.
// Thread-safety: immutable; the bytes may be read from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "comm/base/status.h"

namespace lockstep::data {

class MappedFile {
 public:
  // kNoInput when it is not there, not readable or not a regular file. An empty file is an empty
  // span.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  int64_t modified_ns() const { return modified_ns_; }

  // Asks the kernel to read the file ahead of its use.
  void will_need() const;

 private:
  MappedFile() = default;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  int64_t modified_ns_ = 0;
};

}  // namespace lockstep::data
