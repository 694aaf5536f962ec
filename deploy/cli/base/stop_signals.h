// Holds SIGINT, SIGTERM, SIGHUP and SIGUSR1 back from the first moment on, so that a Ctrl-C while
// things are still being prepared is neither lost nor leaves them half done.
//
// Thread-safety: made, asked and released on the main thread before there are others.
#pragma once

#include <signal.h>

namespace lockstep {

class StopSignals {
 public:
  StopSignals();
  // Whoever comes to an end without release() has answered what is held, or has nothing left to
  // stop: it is taken, and does not end the process in the place of its exit code.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // One has come and is held.
  bool is_pending() const;
  // From now on they are delivered, also those that were held.
  void release();
  // They are held again.
  void hold();

 private:
  sigset_t before_;
};

}  // namespace lockstep
