// Writes a ZIP archive as PyTorch's own writer does: files stored as they are, contents aligned to
// 64 bytes. Archives may be larger than 4 GiB.
//
// Format: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3.
// Thread-safety: one thread for each object.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::exported {

// A new file that appears under its name when finish() returns ok. Until then, and forever without
// finish(), an old file of this name stays. The destructor removes the temporary file next to it.
// After an error of add() all other functions return it, too.
class StoredZip {
 public:
  explicit StoredZip(std::string path);
  ~StoredZip();
  StoredZip(const StoredZip&) = delete;
  StoredZip& operator=(const StoredZip&) = delete;

  // `name` with all its folders. kInternal if the file cannot be written.
  Status add(const std::string& name, std::span<const uint8_t> content);
  Status finish();

 private:
  struct Entry {
    std::string name;
    uint64_t header = 0;
    uint64_t bytes = 0;
    uint32_t crc = 0;
  };
  void write(std::string_view bytes);
  void fail(const std::string& what);
  std::string directory() const;

  const std::string path_;
  const std::string temporary_;
  int fd_ = -1;
  uint64_t at_ = 0;  // bytes written
  std::vector<Entry> entries_;
  Status status_;
};

}  // namespace lockstep::exported
