// The seam between the program and the network. Sessions and servers use Loop, Connection and
// Transport. Production plugs in Asio (asio_transport.h), tests and the simulator plug in memory
// (memory_transport.h). Calls and rules are the same, so the same code runs in both.
//
// Thread-safety: any thread may call Loop::post(). Everything else belongs to the loop's thread, or
// to the one thread that sets things up before the loop runs.
//
// Invariants:
//  1. Handlers run on the loop's thread, one at a time, and never from inside a call of this
//     interface: send(), close(), connect(), listen() and set_handlers() return before any handler
//     runs.
//  2. Frames of one connection arrive in the order of sending, each at most once. If frame n
//     arrived, so did all before it.
//  3. on_close comes exactly once if the connection ends by anything but our close(). It is the
//     last callback. After close() has returned there is no callback at all.
//  4. Nothing is read before set_handlers(): bytes that have arrived wait in the socket.
//  5. close() still delivers frames queued by send(), for at most limits::kLingerMs. If nothing was
//     ever sent, it cuts at once. The peer then gets on_close with kUnavailable.
//  6. Destroying a Connection or a Listener closes it.
//  7. on_connected is called exactly once. A result that the handler does not keep is destroyed,
//     hence closed.
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

  // Runs `fn` on the loop's thread, after everything posted before. Thread-safe. Work posted after
  // the loop has stopped for good is destroyed without running.
  virtual void post(std::function<void()> fn) = 0;

  // Runs `fn` once, `delay_ms` from now or a little later; never before this call has returned.
  virtual TimerId call_after(int64_t delay_ms, std::function<void()> fn) = 0;

  // After it has returned, the timer's function does not run. Unknown and finished ids are fine.
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

  // Starts reading. Call it again to replace the handlers.
  virtual void set_handlers(Handlers handlers) = 0;

  // Queues a frame. Does nothing on a connection that is over. If more than limits::kSendQueueBytes
  // would wait, it cuts the connection and on_close says so: a peer that does not read must not eat
  // our memory. Connections share the bytes of the same frame.
  virtual void send_shared(wire::SharedFrame frame) = 0;
  void send(const wire::Frame& frame) { send_shared(wire::share_frame(frame)); }

  virtual void close() = 0;

  // The largest payload accepted from the peer; limits::kFrameBytesBeforeAuth at first.
  virtual void set_frame_limit(size_t bytes) = 0;

  virtual bool is_open() const = 0;
  virtual size_t queued_bytes() const = 0;

  // The peer's address for people, e.g. "127.0.0.1:51234".
  virtual const std::string& peer() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // With the real port if port 0 was asked for.
  virtual const Address& address() const = 0;
};

class Transport {
 public:
  using AcceptHandler = std::function<void(std::shared_ptr<Connection>)>;
  using ConnectHandler = std::function<void(Result<std::shared_ptr<Connection>>)>;

  virtual ~Transport() = default;
  virtual Loop& loop() = 0;

  // kConfig if the port is taken or the address is forbidden here, with what to do about it.
  virtual Result<std::unique_ptr<Listener>> listen(const Address& address,
                                                   AcceptHandler on_accept) = 0;

  // Resolves a name at every call, within `timeout_ms` of its own. kUnavailable if no server
  // answers, kTimeout after `timeout_ms`, kConfig for an address that is forbidden here.
  virtual void connect(const Address& address, int64_t timeout_ms, ConnectHandler on_connected) = 0;
};

}  // namespace lockstep::rpc
