// Progress of something that takes longer than two seconds, on stderr: one line that is written
// over in a terminal, a line every twenty seconds elsewhere.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // ends the line, where there is one
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // As data::ProgressFn.
  void show(const std::string& what, uint64_t done, uint64_t total);

 private:
  bool is_terminal_;
  bool is_begun_ = false;
  int64_t next_ns_;
};

}  // namespace lockstep
