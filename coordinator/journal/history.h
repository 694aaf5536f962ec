// DIR/history.jsonl: one line for each step of the surviving lineage, for people and plots. The
// coordinator derives it from the journal. It appends after the commit, and cuts where the lineage
// is cut.
//
//   {"step":1,"epoch":0,"loss":2.30258512,"lr":0.001,"samples":128}
//
// INVARIANTS
//  H1 Line n has step n (steps count from 1), however often the run was resumed.
//  H2 Bytes after the last newline do not count. open() cuts a line that a crash left unfinished.
//  H3 At the end of a run the lines match the journal, whatever was there before. After a resume
//     the newest lines match, and all others lie where they should.
//  H4 If somebody deletes, replaces or cuts the file under the run, the next line to write finds
//     out, and the coordinator writes the file again from the journal.
//
// A loss that is not a number becomes null. thin_history.h has history-thin.jsonl, which lies next
// to it.
//
// The pieces of a call (step_piece.h) are the journal's. They tell how long the lines of a piece
// are, and their hash, so that they need not be counted or compared with the journal line by line.
//
// Thread-safety: one thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "coordinator/journal/journal_entry.h"
#include "coordinator/journal/step_piece.h"
#include "coordinator/journal/thin_history.h"

namespace lockstep::coordinator {

std::string history_line(const StepEntry& step);  // with its newline

class History {
 public:
  // Visits the steps [from, to) of the journal.
  using Steps =
      std::function<Status(Step from, Step to, const std::function<void(const StepEntry&)>&)>;

  // Keeps the first `keep_steps` lines, as far as they are there in order, and cuts the rest.
  static Result<std::unique_ptr<History>> open(const std::string& path, Step keep_steps,
                                               const std::vector<StepPiece>& pieces = {});
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  Step lines() const { return lines_; }

  // REQUIRES: step.step == lines(). Visible to readers after flush().
  void append(const StepEntry& step);
  Status flush();
  // Appends the missing lines up to `end`, and flushes now and then.
  Status fill(Step end, const Steps& steps);
  bool is_pending() const { return pending_lines_ > 0; }  // there is something to flush
  // Whether the file is where it was, as it was after the last flush().
  bool is_whole() const;
  // Writes the missing lines. REQUIRES: all lines are in the journal.
  Status restore(const Steps& steps);
  // Cuts the file where a line does not match the journal's step, and writes the lines up to `end`
  // again. False if all lines were right. Compares the lines of `pieces` by their hashes, or not at
  // all if not `reads_all`. REQUIRES: everything is flushed.
  Result<bool> correct(Step end, const Steps& steps, const std::vector<StepPiece>& pieces = {},
                       bool reads_all = true);
  // Cuts as open() does. REQUIRES: everything is flushed.
  Status cut(Step keep_steps, const std::vector<StepPiece>& pieces = {});

 private:
  // Whole lines at the begin of the file.
  struct Lines {
    Step count = 0;
    off_t bytes = 0;
  };

  History(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Lines lines_of(const std::vector<StepPiece>& pieces, Step limit) const;
  Result<Lines> right_lines(const std::vector<StepPiece>& pieces, Step limit) const;

  int fd_;
  std::string path_;
  Step lines_ = 0;
  off_t bytes_ = 0;  // that were written
  Step pending_lines_ = 0;
  std::string pending_;
  std::unique_ptr<ThinHistory> thin_;
};

// A step of which only the number is known. Its loss and learning rate are not numbers.
StepEntry unknown_step(Step step);

// The first `limit` steps, as far as whole lines are there in order; element n is step n. Without
// generation, and with the digits of the file.
std::vector<StepEntry> read_history(const std::string& path, Step limit);

}  // namespace lockstep::coordinator
