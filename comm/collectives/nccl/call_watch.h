// Watches the one thread that calls NCCL and CUDA for a Collective. All waits of ours end when the
// generation is closed. A call that does not return is not ours to end: the library blocks,
// although the communicator is non-blocking, or the GPU's queue is full after a kernel that never
// ends. Then this worker would hold the others up until cluster.hang_s, so the watch calls `told`.
//
// INVARIANTS
//  W1 The watch does not call `told` while the call's generation is open: a peer may still come.
//  W2 The watch does not call `told` for a call that returns within limits::kNcclStuckLooks looks
//     after the close. A process that stands still, as after SIGSTOP, takes no looks, so it is not
//     blamed for that.
//
// Thread-safety: a Call lives on one thread at a time; begin_generation() on that thread, outside
// of calls; look() on another one. `told` runs there, once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/base/limits.h"
#include "comm/base/status.h"

namespace lockstep::nccl {

// The function to tell, with kInternal, and after how many looks, of limits::kNcclLookMs each.
struct WatchOptions {
  std::function<void(const Status&)> told;  // empty: no watch
  int looks = limits::kNcclStuckLooks;
};

class CallWatch {
 public:
  explicit CallWatch(WatchOptions options) : options_(std::move(options)) {}

  // While it lives, the thread is inside `what`, text that lasts.
  class Call {
   public:
    Call(CallWatch& watch, const char* what);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CallWatch& watch_;
  };

  void begin_generation(std::function<bool()> is_closed);

  void look();

 private:
  bool is_closed();

  const WatchOptions options_;
  std::atomic<uint64_t> turn_{0};  // odd: inside a call
  std::atomic<const char*> what_{""};
  std::mutex mutex_;
  std::function<bool()> is_closed_;

  // The state of look().
  uint64_t seen_ = 0;
  int looks_ = 0;  // at the call `seen_`, since the close
  bool is_told_ = false;
};

// A thread that looks every limits::kNcclLookMs, if `is_on`.
class WatchThread {
 public:
  WatchThread(std::shared_ptr<CallWatch> watch, bool is_on);
  ~WatchThread();

 private:
  void loop();

  const std::shared_ptr<CallWatch> watch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ending_ = false;
  std::thread thread_;  // last, because it uses the others
};

}  // namespace lockstep::nccl
