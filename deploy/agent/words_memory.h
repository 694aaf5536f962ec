// Memory that a child writes its last words to, for a parent that reads them after its end. Unlike
// its log, it needs no room on a disk.
//
// Thread-safety: a value; one thread.
#pragma once

#include <string>
#include <utility>

namespace lockstep {

class WordsMemory {
 public:
  WordsMemory();  // without descriptors or memory left, it stays empty
  WordsMemory(WordsMemory&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  WordsMemory& operator=(WordsMemory&& other) noexcept;
  ~WordsMemory();

  int descriptor() const { return fd_; }  // -1: there is none
  // Without control characters but line ends; "" if the child wrote nothing.
  std::string text() const;

 private:
  int fd_;
};

}  // namespace lockstep
