// Orderly shutdown (after seastar::gate). Work enters the gate. close() admits no more work, and
// waits until all work inside has left.
//
// Thread-safety: all calls from any thread. Call close() once, and not from inside the gate.
#pragma once

#include <condition_variable>
#include <mutex>

namespace lockstep {

class Gate {
 public:
  // False if the gate is closed: the work must not start.
  bool try_enter() {
    std::lock_guard lock(mutex_);
    if (closed_) return false;
    ++inside_;
    return true;
  }

  void leave() {
    std::lock_guard lock(mutex_);
    if (--inside_ == 0) empty_.notify_all();
  }

  void close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    empty_.wait(lock, [this] { return inside_ == 0; });
  }

  bool is_closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  int inside_ = 0;
  bool closed_ = false;
};

}  // namespace lockstep
