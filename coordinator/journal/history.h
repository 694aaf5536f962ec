// DIR/history.jsonl: one line for every step of the surviving lineage, for people and plots. It is
// derived from the journal: appended after the commit, and cut where the lineage is cut.
//
//   {"step":1,"epoch":0,"loss":2.30258512,"lr":0.001,"samples":128}
//
// INVARIANTS
//  H1 Line n has step n (steps count from 1), however often the run was resumed.
//  H2 What is after the last newline is not part of it; a crash in the middle of a line is cut
//  away.
//
// A loss that is no number is written as null. Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

std::string history_line(const StepEntry& step);  // with its newline

class History {
 public:
  // Keeps the first `keep_steps` lines, or as many as are there in order, and cuts the rest.
  static Result<std::unique_ptr<History>> open(const std::string& path, Step keep_steps);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  Step lines() const { return lines_; }

  // REQUIRES: step.step == lines(). Visible to readers after flush().
  void append(const StepEntry& step);
  Status flush();
  // As open() does; nothing is pending.
  Status cut(Step keep_steps);

 private:
  History(int fd, std::string path, Step lines) : fd_(fd), path_(std::move(path)), lines_(lines) {}

  int fd_;
  std::string path_;
  Step lines_;
  std::string pending_;
};

}  // namespace lockstep::coordinator
