// DIR/history.jsonl: one line for each step of the surviving lineage, for people and plots. The
// coordinator derives it from the journal. It appends after the commit, and cuts where the lineage
// is cut.
//
//   {"step":1,"epoch":0,"loss":2.30258512,"lr":0.001,"samples":128}
//
// INVARIANTS
//  H1 Line n has step n (steps count from 1), however often the run was resumed.
//  H2 Bytes after the last newline do not count. open() cuts a line that a crash left unfinished.
//  H3 After a resume, and at the end of a run, the lines are those of the journal, whatever was
//     there before.
//  H4 If somebody deletes, replaces or cuts the file under the run, the next line to write finds
//  out,
//     and the file is written anew from the journal.
//
// A loss that is not a number becomes null.
//
// Thread-safety: one thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

std::string history_line(const StepEntry& step);  // with its newline

class History {
 public:
  // Visits the steps [from, to) of the journal.
  using Steps =
      std::function<Status(Step from, Step to, const std::function<void(const StepEntry&)>&)>;

  // Keeps the first `keep_steps` lines, as far as they are there in order, and cuts the rest.
  static Result<std::unique_ptr<History>> open(const std::string& path, Step keep_steps);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  Step lines() const { return lines_; }

  // REQUIRES: step.step == lines(). Visible to readers after flush().
  void append(const StepEntry& step);
  Status flush();
  // Appends what is missing up to `end`, and flushes.
  Status fill(Step end, const Steps& steps);
  bool is_pending() const { return pending_lines_ > 0; }  // there is something to flush
  // Whether the file is where it was, as it was after the last flush().
  bool is_whole() const;
  // Writes what is missing. REQUIRES: all lines are in the journal.
  Status restore(const Steps& steps);
  // Cuts where a line is not that of the journal's step, and writes those up to `end` anew. False:
  // all were right. REQUIRES: everything is flushed.
  Result<bool> correct(Step end, const Steps& steps);
  // Cuts as open() does. REQUIRES: everything is flushed.
  Status cut(Step keep_steps);

 private:
  History(int fd, std::string path, Step lines) : fd_(fd), path_(std::move(path)), lines_(lines) {}

  int fd_;
  std::string path_;
  Step lines_;
  off_t bytes_ = 0;  // that were written
  Step pending_lines_ = 0;
  std::string pending_;
};

}  // namespace lockstep::coordinator
