// Thread-safety: from any thread.
#pragma once

#include <csignal>
#include <functional>
#include <thread>
#include <utility>

#include "comm/base/thread_name.h"

namespace lockstep::source {

// A thread that gets no signals, so that they go to threads that handle them. Throws as std::thread
// does when the machine gives no more threads.
inline std::thread quiet_thread(std::function<void()> work) {
  class Mask {
   public:
    Mask() {
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~Mask() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

   private:
    sigset_t before_{};
  };
  const Mask inherited;
  return std::thread([work = std::move(work)] {
    name_this_thread("fetch");
    work();
  });
}

}  // namespace lockstep::source
