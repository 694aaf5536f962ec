// Thread-safety: from any thread.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "comm/base/thread_name.h"
#include "comm/environment/blocked_signals.h"

namespace lockstep::source {

// A thread that gets no signals, so that they go to threads that handle them. Throws as std::thread
// does when the machine gives no more threads.
inline std::thread quiet_thread(std::function<void()> work) {
  const BlockedSignals inherited;
  return std::thread([work = std::move(work)] {
    name_this_thread("fetch");
    work();
  });
}

}  // namespace lockstep::source
