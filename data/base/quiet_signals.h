// Thread-safety: belongs to the thread that makes it.
#pragma once

#include <csignal>

namespace lockstep::data {

// For its lifetime, the calling thread gets no signals but those of its own faults. Threads started
// meanwhile get no others for good. So signals go to threads that know what to do with them.
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
