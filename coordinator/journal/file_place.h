// Notices that the file which a process writes was deleted, replaced, moved away or cut, while the
// process goes on writing where no reader will look.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"

namespace lockstep::coordinator {

class FilePlace {
 public:
  // For a file that only grows. It may not be there yet.
  explicit FilePlace(std::string path) : path_(std::move(path)) {}

  // kInternal if the file is not the one that the first look found, or is shorter than at an
  // earlier look. The first look, when the file is there, remembers it.
  Status look();

 private:
  std::string path_;
  bool is_known_ = false;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace lockstep::coordinator
