// Reads the lines that another process appends to a text file, like `tail -f`.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class FileFollower {
 public:
  // Begins at the present end of the file. The file need not exist yet.
  explicit FileFollower(std::string path);

  // The whole lines since the last call, without control characters. At most `limit` lines a call;
  // the next call returns the rest. `with_last`: also a last line without its end, for a file that
  // no process writes any more.
  std::vector<std::string> new_lines(size_t limit = 50, bool with_last = false);

 private:
  std::string path_;
  int64_t offset_ = 0;
};

}  // namespace lockstep
