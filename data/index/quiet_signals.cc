#include "data/index/quiet_signals.h"

#include <pthread.h>

#include "data/index/guarded_range.h"

namespace lockstep::data {

QuietSignals::QuietSignals() {
  sigset_t all;
  sigfillset(&all);
  keep_fault_signals(all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

QuietSignals::~QuietSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace lockstep::data
