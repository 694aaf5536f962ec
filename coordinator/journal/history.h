// DIR/history.jsonl: one line for each step of the surviving lineage, for people and plots. The
// coordinator derives it from the journal. It appends after the commit, and cuts where the lineage
// is cut.
//
//   {"step":1,"epoch":0,"loss":2.30258512,"lr":0.001,"samples":128}
//
// INVARIANTS
//  H1 Line n has step n (steps count from 1), however often the run was resumed.
//  H2 Bytes after the last newline do not count. open() cuts a line that a crash left unfinished.
//
// A loss that is not a number becomes null.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

std::string history_line(const StepEntry& step);  // with its newline

class History {
 public:
  // Keeps the first `keep_steps` lines, as far as they are there in order, and cuts the rest.
  static Result<std::unique_ptr<History>> open(const std::string& path, Step keep_steps);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  Step lines() const { return lines_; }

  // REQUIRES: step.step == lines(). Visible to readers after flush().
  void append(const StepEntry& step);
  Status flush();
  // Cuts as open() does. REQUIRES: everything is flushed.
  Status cut(Step keep_steps);

 private:
  History(int fd, std::string path, Step lines) : fd_(fd), path_(std::move(path)), lines_(lines) {}

  int fd_;
  std::string path_;
  Step lines_;
  std::string pending_;
};

}  // namespace lockstep::coordinator
