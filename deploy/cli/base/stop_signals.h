// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1 from the first moment on, for good unless release() is
// called. A Ctrl-C during preparations is then not lost, and does not leave them half done; one
// that comes while the process ends does not take the place of its exit code. A signal that this
// process is to ignore (nohup) stays ignored.
//
// Thread-safety: made, asked and released on the main thread before there are others.
#pragma once

#include <signal.h>

namespace lockstep {

class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // True if a signal came and is held.
  bool is_pending() const;
  // Delivers the held signals and all later ones.
  void release();
  // Holds them again.
  void hold();

 private:
  sigset_t before_;
};

}  // namespace lockstep
