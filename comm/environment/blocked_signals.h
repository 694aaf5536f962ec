// Thread-safety: belongs to the thread that makes it.
#pragma once

#include <csignal>

namespace lockstep {

// While the object lives, the calling thread gets no signal, nor do threads and processes that it
// starts meanwhile: they inherit this for good. So signals go to threads that know what to do with
// them. Data's threads use data/base/quiet_signals.h, which lets through what guards a mapping.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace lockstep
