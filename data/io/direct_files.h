// The descriptors by which open files are read around the page cache.
//
// Thread-safety: one thread at a time.
#pragma once

#include <map>

namespace lockstep::data {

class DirectFiles {
 public:
  DirectFiles() = default;
  ~DirectFiles();
  DirectFiles(const DirectFiles&) = delete;
  DirectFiles& operator=(const DirectFiles&) = delete;

  // Of the same file as `fd`, which stays open; -1 where the file system has none, or too many
  // files have one.
  int of(int fd);
  // There turned out to be none.
  void give_up(int fd);

 private:
  std::map<int, int> files_;  // by fd of the page cache
};

}  // namespace lockstep::data
