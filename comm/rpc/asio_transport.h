// Loop and Transport of production: Boost.Asio over TCP.
//
// Thread-safety: AsioLoop::post(), stop() from any thread; run() on one thread; the rest as in
// transport.h. Sockets are close-on-exec and have TCP_NODELAY.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>

#include "comm/rpc/transport.h"

namespace boost::asio {
class io_context;
}

namespace lockstep::rpc {

class TlsIdentity;

class AsioLoop final : public Loop {
 public:
  AsioLoop();
  // Destroys what is still queued without running it. REQUIRES: run() has returned.
  ~AsioLoop() override;

  // Runs handlers until stop(), also while there is nothing to do. May be called again.
  void run();

  // Runs one handler, waiting for it up to `max_wait_ms`; false when none came. Instead of run(),
  // for programs and tests that have a loop of their own.
  bool run_one(int64_t max_wait_ms);

  // Makes run() return after the handler that runs now. A stop() before run() counts.
  void stop();

  void post(std::function<void()> fn) override;
  TimerId call_after(int64_t delay_ms, std::function<void()> fn) override;
  void cancel(TimerId id) override;
  int64_t now_ms() const override;

  // Calls `fn` on the loop's thread each time one of `signals` arrives (SIGTERM, SIGCHLD, ...),
  // until the loop is destroyed. One call per program and signal.
  void on_signals(std::initializer_list<int> signals, std::function<void(int)> fn);

  // For the adapters in this folder.
  boost::asio::io_context& context();
  // True inside the destructor: what is dropped then must start nothing new.
  bool is_dying() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class AsioTransport final : public Transport {
 public:
  // With `tls` every connection is mutual TLS (tls_socket.h): who connects holds the certificate of
  // the listener against the host of the address that it was given. A listener tells of a caller
  // when TLS begins (tls_door.h). Null: in the clear.
  explicit AsioTransport(AsioLoop& loop, std::shared_ptr<TlsIdentity> tls = nullptr);
  ~AsioTransport() override;

  Loop& loop() override { return loop_; }
  Result<std::unique_ptr<Listener>> listen(const Address& address,
                                           AcceptHandler on_accept) override;
  void connect(const Address& address, int64_t timeout_ms, ConnectHandler on_connected) override;

 private:
  // `address` in numbers, `dialled` as it was given.
  void dial(const Address& address, const std::string& dialled, int64_t timeout_ms,
            ConnectHandler on_connected);

  AsioLoop& loop_;
  std::shared_ptr<TlsIdentity> tls_;
};

}  // namespace lockstep::rpc
