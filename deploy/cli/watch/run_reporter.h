// What a person sees of a run: on a terminal one live line, redrawn in place, with everything else
// scrolling above it; elsewhere plain lines, few enough for a log.
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
  // Of a process that a launcher has started. mpirun gives it a terminal of its own making,
  // wherever mpirun's output goes: what counts is where the launcher writes.
  static Screen of_launched();
  size_t width() const;  // asked anew each time: a window can be resized
};

class Reporter {
 public:
  explicit Reporter(Screen screen) : screen_(screen) {}
  ~Reporter() { clear_line(); }

  bool is_terminal() const { return screen_.is_terminal; }

  // A sentence that stays.
  void note(const std::string& text);
  // A sentence that the next call replaces; elsewhere than on a terminal nothing.
  void passing(const std::string& text);
  // The present state; draws or prints what is due. `now_ms` is monotonic.
  void status(const RunStatus& status, int64_t now_ms);

 private:
  void clear_line();
  bool plain_line_is_due(const RunStatus& status, int64_t now_ms) const;

  Screen screen_;
  bool line_drawn_ = false;
  std::string drawn_;
  std::string last_state_;
  uint64_t last_eval_step_ = 0;
  uint64_t last_step_ = 0;  // of the last plain line
  int64_t last_ms_ = 0;
  uint64_t last_generation_ = 0;
};

}  // namespace lockstep
