// The seam between the program and the network. Sessions and servers are written against Loop,
// Connection and Transport; production plugs in Asio (asio_transport.h), tests and the simulator
// memory (memory_transport.h). Same calls, same rules, so the same code runs in both.
//
// Thread-safety: Loop::post() may be called from any thread. Everything else belongs to the loop's
// thread (or to the one thread that sets things up before the loop runs).
//
// Invariants:
//  1. Handlers run on the loop's thread, one at a time, and never from inside a call of this
//     interface: send(), close(), connect(), listen(), set_handlers() return before any handler
//     runs.
//  2. Frames of one connection arrive in the order they were sent, each at most once. If frame n
//     arrived, so did all before it.
//  3. on_close comes exactly once when the connection ends by anything but our close(), and it is
//     the last callback. After close() has returned there is no callback at all.
//  4. Nothing is read before set_handlers(); what arrived until then waits in the socket.
//  5. close() still delivers what was queued by send(), for at most limits::kLingerMs; where
//  nothing
//     was ever sent it cuts at once. The peer then gets on_close with kUnavailable.
//  6. Destroying a Connection or a Listener is closing it.
//  7. on_connected is called exactly once. A result that nobody wants is dropped, hence closed.
//  8. A Transport and its Loop outlive the connections and listeners made from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "comm/net/address.h"
#include "comm/wire/frames.h"

namespace lockstep::rpc {

using TimerId = uint64_t;  // 0: no timer

class Loop {
 public:
  virtual ~Loop() = default;

  // Runs `fn` on the loop's thread, after everything posted before. Thread-safe. What is posted
  // after the loop has stopped for good is destroyed without being run.
  virtual void post(std::function<void()> fn) = 0;

  // Runs `fn` once, `delay_ms` from now or a little later; never before this call has returned.
  virtual TimerId call_after(int64_t delay_ms, std::function<void()> fn) = 0;

  // After it returns the timer's function does not run. Unknown and finished ids are fine.
  virtual void cancel(TimerId id) = 0;

  // Monotonic.
  virtual int64_t now_ms() const = 0;
};

class Connection {
 public:
  struct Handlers {
    std::function<void(wire::Frame&&)> on_frame;
    std::function<void(const Status&)> on_close;
  };

  virtual ~Connection() = default;

  // Starts reading. May be called again to put other handlers in place.
  virtual void set_handlers(Handlers handlers) = 0;

  // Queues a frame; a no-op on a connection that is over. When more than limits::kSendQueueBytes
  // would wait, the connection is cut and on_close says so: a peer that does not read must not eat
  // our memory. Connections that are sent the same frame share its bytes.
  virtual void send_shared(wire::SharedFrame frame) = 0;
  void send(const wire::Frame& frame) { send_shared(wire::share_frame(frame)); }

  virtual void close() = 0;

  // Largest payload accepted from the peer; limits::kFrameBytesBeforeAuth at first.
  virtual void set_frame_limit(size_t bytes) = 0;

  virtual bool is_open() const = 0;
  virtual size_t queued_bytes() const = 0;

  // The peer's address for people, e.g. "127.0.0.1:51234".
  virtual const std::string& peer() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // With the real port where port 0 was asked for.
  virtual const Address& address() const = 0;
};

class Transport {
 public:
  using AcceptHandler = std::function<void(std::shared_ptr<Connection>)>;
  using ConnectHandler = std::function<void(Result<std::shared_ptr<Connection>>)>;

  virtual ~Transport() = default;
  virtual Loop& loop() = 0;

  // kConfig when the port is taken or the address is not allowed here, with what to do about it.
  virtual Result<std::unique_ptr<Listener>> listen(const Address& address,
                                                   AcceptHandler on_accept) = 0;

  // A name is resolved at every call, within `timeout_ms` of its own. kUnavailable when nobody
  // answers, kTimeout after `timeout_ms`, kConfig for an address that is not allowed here.
  virtual void connect(const Address& address, int64_t timeout_ms, ConnectHandler on_connected) = 0;
};

}  // namespace lockstep::rpc
