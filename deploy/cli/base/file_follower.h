// New whole lines of a text file that another process appends to, like `tail -f`, bounded.
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class FileFollower {
 public:
  // Begins at the present end of the file, which need not exist yet.
  explicit FileFollower(std::string path);

  // Lines that have come since, without control characters; at most `limit` lines a call, the rest
  // comes with the next. `with_last`: also an unfinished last line, when nobody writes any more.
  std::vector<std::string> new_lines(size_t limit = 50, bool with_last = false);

 private:
  std::string path_;
  int64_t offset_ = 0;
};

}  // namespace lockstep
