#include "data/base/quiet_signals.h"

#include <pthread.h>

#include "data/base/guarded_range.h"

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
