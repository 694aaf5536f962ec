// Shows a run to a person. A terminal gets one live line, redrawn in place, with other lines
// scrolling above it. Elsewhere there are plain lines, few enough for a log.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "deploy/cli/watch/run_status.h"

namespace lockstep {

struct Screen {
  std::FILE* out = stdout;
  bool is_terminal = false;
  bool unicode = false;

  static Screen of_stdout();
  // The screen of a process under a launcher: where the launcher writes. mpirun gives its processes
  // a pseudo-terminal, wherever mpirun's own output goes.
  static Screen of_launched();
  size_t width() const;  // asked each time: users resize windows
};

class Reporter {
 public:
  explicit Reporter(Screen screen) : screen_(screen) {}
  ~Reporter() { clear_line(); }

  bool is_terminal() const { return screen_.is_terminal; }

  // Prints a sentence that stays.
  void note(const std::string& text);
  // Shows a sentence that the next call replaces; only on a terminal.
  void passing(const std::string& text);
  // The job leaves train.global_batch open: status() tells the number when it is found.
  void await_batch() { awaits_batch_ = true; }
  // The same for a run that ended before status() heard of it. Tells the number once.
  void batch_found(const RunStatus& status);
  // Draws or prints what is due of the present state. `now_ms` is monotonic.
  void status(const RunStatus& status, int64_t now_ms);

 private:
  void clear_line();
  bool plain_line_is_due(const RunStatus& status, int64_t now_ms) const;

  Screen screen_;
  bool line_drawn_ = false;
  std::string drawn_;
  std::string last_state_;
  uint64_t last_eval_step_ = 0;
  uint64_t told_evaluations_ = 0;
  uint64_t last_step_ = 0;  // of the last plain line
  int64_t last_ms_ = 0;
  uint64_t last_generation_ = 0;
  bool awaits_batch_ = false;
};

}  // namespace lockstep
