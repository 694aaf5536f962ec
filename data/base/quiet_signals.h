// Thread-safety: belongs to the thread that makes it.
#pragma once

#include <csignal>

namespace lockstep::data {

// While the object lives, the calling thread gets only the signals of its own faults. Threads that
// it starts meanwhile inherit this for good. So signals go to threads that know what to do with
// them.
class QuietSignals {
 public:
  QuietSignals();
  ~QuietSignals();
  QuietSignals(const QuietSignals&) = delete;
  QuietSignals& operator=(const QuietSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace lockstep::data
