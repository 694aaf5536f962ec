// Shows on stderr the progress of work that takes longer than two seconds. A terminal shows one
// line that each update overwrites; elsewhere a new line comes every twenty seconds.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // ends the line, if one was written
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
