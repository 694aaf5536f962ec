// The waits of a simulated training thread: for time, and for conditions on memory that others
// change.
//
// Thread-safety: one thread; one coroutine waits at a time.
#pragma once

#include <coroutine>
#include <functional>
#include <utility>

#include "comm/base/prng.h"
#include "comm/rpc/transport.h"

namespace lockstep::sim {

class Waiter {
 public:
  // REQUIRES: both outlive it. The loop drops its events before the coroutine ends.
  Waiter(rpc::Loop& loop, Prng& prng) : loop_(loop), prng_(prng) {}

  struct Sleep {
    Waiter* waiter;
    int64_t ms;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) const {
      const int64_t stalled_ms = std::exchange(waiter->stall_ms_, 0);
      waiter->loop_.call_after(ms + stalled_ms, [handle] { handle.resume(); });
    }
    void await_resume() const noexcept {}
  };
  Sleep sleep(int64_t ms) { return {this, ms}; }
  // Between `least` and `most`, both included.
  Sleep sleep(int64_t least, int64_t most) {
    return {this,
            least + static_cast<int64_t>(prng_.below(static_cast<uint64_t>(most - least) + 1))};
  }

  // The thread hangs for this long in its next act. Its process lives on.
  void stall(int64_t ms) { stall_ms_ = ms; }

  struct Until {
    Waiter* waiter;
    bool await_ready() const { return waiter->is_ready_(); }
    void await_suspend(std::coroutine_handle<> handle) const noexcept { waiter->waiting_ = handle; }
    void await_resume() const noexcept {}
  };
  // Evaluated now, and a little after every poke().
  Until until(std::function<bool()> is_ready) {
    is_ready_ = std::move(is_ready);
    return {this};
  }

  void poke() {
    if (!waiting_ || std::exchange(is_poked_, true)) return;
    loop_.call_after(static_cast<int64_t>(prng_.below(2)), [this] {
      is_poked_ = false;
      if (!waiting_ || !is_ready_()) return;
      std::exchange(waiting_, {}).resume();
    });
  }

 private:
  rpc::Loop& loop_;
  Prng& prng_;
  std::function<bool()> is_ready_;
  std::coroutine_handle<> waiting_;
  bool is_poked_ = false;
  int64_t stall_ms_ = 0;
};

}  // namespace lockstep::sim
