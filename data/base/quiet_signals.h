// Thread-safety: of the thread that makes it.
#pragma once

#include <csignal>

namespace lockstep::data {

// While it lives, the calling thread gets no signals but of its own faults, and so do threads that
// it starts, for good: signals go to threads that know what to do with them.
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
