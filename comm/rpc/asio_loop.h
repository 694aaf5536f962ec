// The Loop of production: Boost.Asio.
//
// Thread-safety: post() and stop() from any thread, run() on one thread, the rest as in
// transport.h.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>

#include "comm/rpc/transport.h"

namespace boost::asio {
class io_context;
}

namespace lockstep::rpc {

class AsioLoop final : public Loop {
 public:
  AsioLoop();
  // Destroys queued work without running it. REQUIRES: run() has returned.
  ~AsioLoop() override;

  // Runs handlers until stop(), also while there is nothing to do. May be called again.
  void run();

  // Runs one handler, and waits up to `max_wait_ms` for it. False if none came. Use it instead of
  // run() in programs and tests with a loop of their own.
  bool run_one(int64_t max_wait_ms);

  // Makes run() return after the present handler. A stop() before run() counts.
  void stop();

  void post(std::function<void()> fn) override;
  TimerId call_after(int64_t delay_ms, std::function<void()> fn) override;
  void cancel(TimerId id) override;
  int64_t now_ms() const override;

  // Calls `fn` on the loop's thread each time one of `signals` arrives (SIGTERM, SIGCHLD, ...),
  // until the loop is destroyed. Call it once per program and signal. Leaves out a signal that this
  // process is to ignore (comm/environment/inherited_signals.h). From the loop's end on they are
  // held on the thread that ends it: a program that is about to end ends with its own exit code.
  void on_signals(std::initializer_list<int> signals, std::function<void(int)> fn);

  // For the adapters in this folder.
  boost::asio::io_context& context();
  // True inside the destructor: work that is dropped then must start nothing new.
  bool is_dying() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::rpc
